#pragma once

#include <cstdint>

namespace headlight {

struct ReadKernel {
  // Reads `count` floats on the calling thread and writes a value that depends on all of them.
  using Run = void (*)(const float* data, std::int64_t count, float* result) noexcept;
  // One stream after the hardware's own prefetching; the same with prefetches ahead; four streams at once.
  Run ways[3];
};

inline constexpr int kReadWays = 3;

}  // namespace headlight
