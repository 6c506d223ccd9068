// What Philox and dropout need of integers.
#pragma once

#include <cstdint>

#include "simd/isa/x86-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE __m512i mul_even(__m512i a, __m512i b) { return _mm512_mul_epu32(a, b); }
HEADLIGHT_INLINE __m512i upper_halves(__m512i a) { return _mm512_srli_epi64(a, 32); }
HEADLIGHT_INLINE __m512i xor_three(__m512i a, __m512i b, __m512i c) { return _mm512_ternarylogic_epi32(a, b, c, 0x96); }
HEADLIGHT_INLINE __m512i even_lanes(__m512i a, __m512i b) {
  return _mm512_mask_shuffle_epi32(a, 0xAAAA, b, static_cast<_MM_PERM_ENUM>(0xA0));
}
HEADLIGHT_INLINE __m512i lower_pairs(__m512i a, __m512i b) { return _mm512_unpacklo_epi64(a, b); }
HEADLIGHT_INLINE __m512i upper_pairs(__m512i a, __m512i b) { return _mm512_unpackhi_epi64(a, b); }

HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  const __mmask16 kept =
      _mm512_cmpge_epu32_mask(to_native_int(words), to_native_int(broadcast_int(static_cast<std::int32_t>(threshold))));
  return from_native(_mm512_maskz_mov_ps(kept, to_native(v)));
}

}  // namespace headlight::HEADLIGHT_TARGET

#include "simd/isa/split_words-inl.h"
