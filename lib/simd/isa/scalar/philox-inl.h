// What Philox and dropout need of integers.
#pragma once

#include <cstdint>

#include "simd/isa/whole_words-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE WideProduct<Words> mul_wide(Words a, std::uint32_t by) {
  const std::uint64_t product = std::uint64_t{static_cast<std::uint32_t>(a)} * by;
  return {static_cast<Words>(product >> 32), static_cast<Words>(product & 0xFFFFFFFFu)};
}
HEADLIGHT_INLINE Words xor_words(Words a, Words b, std::uint32_t word) { return a ^ b ^ static_cast<Words>(word); }
HEADLIGHT_INLINE void in_order(const Words (&words)[4], IntVec (&ordered)[4]) {
  for (int k = 0; k < 4; ++k) ordered[k] = words[k];
}
HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  return static_cast<std::uint32_t>(words) >= threshold ? v : 0.0f;
}

}  // namespace headlight::HEADLIGHT_TARGET
