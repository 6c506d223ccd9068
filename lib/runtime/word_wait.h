// Sleeping on a word of memory until it changes.
#pragma once

#include <atomic>

namespace headlight::runtime {

// Returns once `word` holds something else than `value`, which is seen with acquire order; sleeps as long as it does
// and nobody wakes.
void wait_while(const std::atomic<int>& word, int value) noexcept;

// After a change of `word`: wakes one of those that sleep on it.
void wake_one(std::atomic<int>& word) noexcept;

}  // namespace headlight::runtime
