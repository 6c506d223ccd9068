// What Philox and dropout need of integers.
#pragma once

#include <cstdint>

#include "simd/isa/x86-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE __m128i mul_even(__m128i a, __m128i b) { return _mm_mul_epu32(a, b); }
HEADLIGHT_INLINE __m128i upper_halves(__m128i a) { return _mm_srli_epi64(a, 32); }
HEADLIGHT_INLINE __m128i xor_three(__m128i a, __m128i b, __m128i c) { return _mm_xor_si128(_mm_xor_si128(a, b), c); }
HEADLIGHT_INLINE __m128i even_lanes(__m128i a, __m128i b) { return _mm_blend_epi16(a, _mm_slli_epi64(b, 32), 0xCC); }
HEADLIGHT_INLINE __m128i lower_pairs(__m128i a, __m128i b) { return _mm_unpacklo_epi64(a, b); }
HEADLIGHT_INLINE __m128i upper_pairs(__m128i a, __m128i b) { return _mm_unpackhi_epi64(a, b); }

HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  const __m128i native = to_native_int(words);
  const __m128i kept = _mm_cmpeq_epi32(
      _mm_max_epu32(native, to_native_int(broadcast_int(static_cast<std::int32_t>(threshold)))), native);
  return from_native(_mm_and_ps(_mm_castsi128_ps(kept), to_native(v)));
}

}  // namespace headlight::HEADLIGHT_TARGET

#include "simd/isa/split_words-inl.h"
