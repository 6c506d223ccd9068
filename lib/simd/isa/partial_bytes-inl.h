// The first bytes of a vector, where nothing loads them by a mask.
#pragma once

#include <cstdint>

#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

struct EightBitLanes {
  std::int8_t lanes[kLanes];
};
[[gnu::noinline]] inline EightBitLanes first_bytes(const std::int8_t* from, int count) {
  EightBitLanes numbers{};
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) numbers.lanes[i] = from[i];
  return numbers;
}
HEADLIGHT_INLINE Vec load_i8_partial(const std::int8_t* from, int count) {
  return load_i8(first_bytes(from, count).lanes);
}

}  // namespace headlight::HEADLIGHT_TARGET
