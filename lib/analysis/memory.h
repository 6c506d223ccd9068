// Memory that an accumulator keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string_view>
#include <vector>

#include "headlight/out_of_memory.h"

namespace headlight::analysis {

// As many Ts as the product of the counts, each count ≥ 0 and each T as T() makes it. Throws OutOfMemory, which names
// `who` asked.
template <class T, class... Counts>
std::vector<T> make_vector(std::string_view who, Counts... counts) {
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T);
  std::size_t count = 1;
  const bool wraps = (__builtin_mul_overflow(count, static_cast<std::size_t>(counts), &count) || ...);
  if (wraps || count > kMost) throw OutOfMemory(who, SIZE_MAX);
  try {
    return std::vector<T>(count);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(who, count * sizeof(T));
  }
}

}  // namespace headlight::analysis
