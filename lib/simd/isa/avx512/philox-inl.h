// What Philox and dropout need of integers.
#pragma once

#include <cstdint>

#include "simd/isa/wide_product-inl.h"
#include "simd/isa/x86-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// x86 multiplies the even lanes; the odd ones are moved there for a second product, and each half comes together again.
HEADLIGHT_INLINE WideProduct mul_wide(IntVec a, std::uint32_t by) {
  const auto factor = _mm512_set1_epi32(static_cast<int>(by));
  const auto words = to_native_int(a);
  const auto even = _mm512_mul_epu32(words, factor);
  const auto odd = _mm512_mul_epu32(_mm512_srli_epi64(words, 32), factor);
  return {from_native_int(_mm512_mask_shuffle_epi32(odd, 0x5555, even, static_cast<_MM_PERM_ENUM>(0xF5))),
          from_native_int(_mm512_mask_shuffle_epi32(even, 0xAAAA, odd, static_cast<_MM_PERM_ENUM>(0xA0)))};
}

HEADLIGHT_INLINE IntVec xor_int(IntVec a, IntVec b, IntVec c) {
  return from_native_int(_mm512_ternarylogic_epi32(to_native_int(a), to_native_int(b), to_native_int(c), 0x96));
}

HEADLIGHT_INLINE void interleave_words(IntVec (&words)[4]) {
  const auto w0 = to_native_int(words[0]), w1 = to_native_int(words[1]);
  const auto w2 = to_native_int(words[2]), w3 = to_native_int(words[3]);
  const auto lower01 = _mm512_unpacklo_epi32(w0, w1), upper01 = _mm512_unpackhi_epi32(w0, w1);
  const auto lower23 = _mm512_unpacklo_epi32(w2, w3), upper23 = _mm512_unpackhi_epi32(w2, w3);
  words[0] = from_native_int(_mm512_unpacklo_epi64(lower01, lower23));
  words[1] = from_native_int(_mm512_unpackhi_epi64(lower01, lower23));
  words[2] = from_native_int(_mm512_unpacklo_epi64(upper01, upper23));
  words[3] = from_native_int(_mm512_unpackhi_epi64(upper01, upper23));
}

HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  const auto least = _mm512_set1_epi32(static_cast<int>(threshold));
  const auto native = to_native_int(words);
  return from_native(_mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(native, least), to_native(v)));
}

}  // namespace headlight::HEADLIGHT_TARGET
