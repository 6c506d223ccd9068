// What Philox and dropout need of integers.
#pragma once

#include <cstdint>

#include "simd/isa/wide_product-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE WideProduct mul_wide(IntVec a, std::uint32_t by) {
  const std::uint64_t product = std::uint64_t{static_cast<std::uint32_t>(a)} * by;
  return {static_cast<IntVec>(product >> 32), static_cast<IntVec>(product & 0xFFFFFFFFu)};
}
HEADLIGHT_INLINE IntVec xor_int(IntVec a, IntVec b, IntVec c) { return a ^ b ^ c; }
HEADLIGHT_INLINE void interleave_words(IntVec (&)[4]) {}
HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  return static_cast<std::uint32_t>(words) >= threshold ? v : 0.0f;
}

}  // namespace headlight::HEADLIGHT_TARGET
