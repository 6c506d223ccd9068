// Counts the locks that this process takes. A test program that links lock_counter.cc has its pthread_mutex_lock, which
// std::mutex is made of, and its kind counted.
#pragma once

#include <cstdint>

namespace headlight::soak {

[[nodiscard]] std::int64_t locks_taken() noexcept;

}  // namespace headlight::soak
