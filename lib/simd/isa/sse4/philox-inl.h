// What Philox and dropout need of integers.
#pragma once

#include <cstdint>

#include "simd/isa/wide_product-inl.h"
#include "simd/isa/x86-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// x86 multiplies the even lanes; the odd ones are moved there for a second product, and each half comes together again.
HEADLIGHT_INLINE WideProduct mul_wide(IntVec a, std::uint32_t by) {
  const auto factor = _mm_set1_epi32(static_cast<int>(by));
  const auto words = to_native_int(a);
  const auto even = _mm_mul_epu32(words, factor);
  const auto odd = _mm_mul_epu32(_mm_srli_epi64(words, 32), factor);
  return {from_native_int(_mm_blend_epi16(_mm_shuffle_epi32(even, 0xF5), odd, 0xCC)),
          from_native_int(_mm_blend_epi16(even, _mm_shuffle_epi32(odd, 0xA0), 0xCC))};
}

HEADLIGHT_INLINE IntVec xor_int(IntVec a, IntVec b, IntVec c) {
  return from_native_int(_mm_xor_si128(_mm_xor_si128(to_native_int(a), to_native_int(b)), to_native_int(c)));
}

HEADLIGHT_INLINE void interleave_words(IntVec (&words)[4]) {
  const auto w0 = to_native_int(words[0]), w1 = to_native_int(words[1]);
  const auto w2 = to_native_int(words[2]), w3 = to_native_int(words[3]);
  const auto lower01 = _mm_unpacklo_epi32(w0, w1), upper01 = _mm_unpackhi_epi32(w0, w1);
  const auto lower23 = _mm_unpacklo_epi32(w2, w3), upper23 = _mm_unpackhi_epi32(w2, w3);
  words[0] = from_native_int(_mm_unpacklo_epi64(lower01, lower23));
  words[1] = from_native_int(_mm_unpackhi_epi64(lower01, lower23));
  words[2] = from_native_int(_mm_unpacklo_epi64(upper01, upper23));
  words[3] = from_native_int(_mm_unpackhi_epi64(upper01, upper23));
}

HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  const auto least = _mm_set1_epi32(static_cast<int>(threshold));
  const auto native = to_native_int(words);
  const __m128i kept = _mm_cmpeq_epi32(_mm_max_epu32(native, least), native);
  return from_native(_mm_and_ps(_mm_castsi128_ps(kept), to_native(v)));
}

}  // namespace headlight::HEADLIGHT_TARGET
