// What Philox and dropout need of integers.
#pragma once

#include <cstdint>

#include "simd/isa/x86-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE __m256i mul_even(__m256i a, __m256i b) { return _mm256_mul_epu32(a, b); }
HEADLIGHT_INLINE __m256i upper_halves(__m256i a) { return _mm256_srli_epi64(a, 32); }
HEADLIGHT_INLINE __m256i xor_three(__m256i a, __m256i b, __m256i c) {
  return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}
HEADLIGHT_INLINE __m256i even_lanes(__m256i a, __m256i b) {
  return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA);
}
HEADLIGHT_INLINE __m256i lower_pairs(__m256i a, __m256i b) { return _mm256_unpacklo_epi64(a, b); }
HEADLIGHT_INLINE __m256i upper_pairs(__m256i a, __m256i b) { return _mm256_unpackhi_epi64(a, b); }

HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  const __m256i native = to_native_int(words);
  const __m256i kept = _mm256_cmpeq_epi32(
      _mm256_max_epu32(native, to_native_int(broadcast_int(static_cast<std::int32_t>(threshold)))), native);
  return from_native(_mm256_and_ps(_mm256_castsi256_ps(kept), to_native(v)));
}

}  // namespace headlight::HEADLIGHT_TARGET

#include "simd/isa/split_words-inl.h"
