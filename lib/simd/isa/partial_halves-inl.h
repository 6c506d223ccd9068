// The first numbers of 16 bits of a vector, where nothing loads them by a mask.
#pragma once

#include <cstdint>

#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE Vec load_bf16(const std::uint16_t* from);
HEADLIGHT_INLINE Vec load_f16(const std::uint16_t* from);

// By itself: a square of keys has as many of them as a vector has lanes, and a loop in each place is most of a kernel.
struct SixteenBitLanes {
  std::uint16_t lanes[kLanes];
};
[[gnu::noinline]] inline SixteenBitLanes first_numbers(const std::uint16_t* from, int count) {
  SixteenBitLanes numbers{};
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) numbers.lanes[i] = from[i];
  return numbers;
}
HEADLIGHT_INLINE Vec load_bf16_partial(const std::uint16_t* from, int count) {
  return load_bf16(first_numbers(from, count).lanes);
}
HEADLIGHT_INLINE Vec load_f16_partial(const std::uint16_t* from, int count) {
  return load_f16(first_numbers(from, count).lanes);
}

}  // namespace headlight::HEADLIGHT_TARGET
