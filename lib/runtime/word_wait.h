// Sleeping on a word of memory until it changes.
#pragma once

#include <atomic>
#include <chrono>

namespace headlight::runtime {

// Returns once `word` holds something else than `value`, which is seen with acquire order; sleeps as long as it does
// and nobody wakes.
void wait_while(const std::atomic<int>& word, int value) noexcept;

// The same for about so long at most: whether it holds something else now.
bool wait_while(const std::atomic<int>& word, int value, std::chrono::milliseconds limit) noexcept;

// After a change of `word`: wakes one of those that sleep on it.
void wake_one(std::atomic<int>& word) noexcept;

}  // namespace headlight::runtime
