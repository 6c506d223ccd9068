// AVX-512 with AMX-BF16, and with AVX512-BF16, which rounds A.
#pragma once

#include "simd/isa/avx512/bf16-inl.h"

// Tiles of sums, of A and of B. A macro, since intrinsics of g++ take the names of their tiles as they are written.
#define HEADLIGHT_AMX_PRODUCT(sums, a, b) _tile_dpbf16ps(sums, a, b)

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {
    .dots_bfloat16 = true, .clears_subnormal = true, .stores_normal_bfloat16 = true, .amx_products = 16};

// Numbers of 16 bits of two vectors in turns: of each block of eight the first four, or the last.
HEADLIGHT_INLINE Vec interleave_lower_numbers(Vec a, Vec b) {
  return from_native(
      _mm512_castsi512_ps(_mm512_unpacklo_epi16(_mm512_castps_si512(to_native(a)), _mm512_castps_si512(to_native(b)))));
}
HEADLIGHT_INLINE Vec interleave_upper_numbers(Vec a, Vec b) {
  return from_native(
      _mm512_castsi512_ps(_mm512_unpackhi_epi16(_mm512_castps_si512(to_native(a)), _mm512_castps_si512(to_native(b)))));
}
// Words that lie as those leave them, in their order.
HEADLIGHT_INLINE void order_interleaved(Vec& lower, Vec& upper) {
  alignas(64) static constexpr std::int32_t kFirst[16] = {0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23};
  alignas(64) static constexpr std::int32_t kSecond[16] = {8,  9,  10, 11, 24, 25, 26, 27,
                                                           12, 13, 14, 15, 28, 29, 30, 31};
  const __m512 a = to_native(lower), b = to_native(upper);
  lower = from_native(_mm512_permutex2var_ps(a, _mm512_load_si512(kFirst), b));
  upper = from_native(_mm512_permutex2var_ps(a, _mm512_load_si512(kSecond), b));
}

// Lane i is the greatest lane of rows[i], none of them NaN: half the shuffles of turning the square over first.
HEADLIGHT_INLINE Vec max_of_each(const Vec (&rows)[16]) {
  __m512 pairs[8], fours[4], eights[2];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const __m512 a = to_native(rows[2 * i]), b = to_native(rows[2 * i + 1]);
    pairs[i] = _mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(pairs[2 * i]), b = _mm512_castps_pd(pairs[2 * i + 1]);
    fours[i] = _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  // The even and the odd ones of both vectors' quarters.
  constexpr int kEven = 0x88, kOdd = 0xdd;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512 a = fours[2 * i], b = fours[2 * i + 1];
    eights[i] = _mm512_max_ps(_mm512_shuffle_f32x4(a, b, kEven), _mm512_shuffle_f32x4(a, b, kOdd));
  }
  return from_native(_mm512_max_ps(_mm512_shuffle_f32x4(eights[0], eights[1], kEven),
                                   _mm512_shuffle_f32x4(eights[0], eights[1], kOdd)));
}

}  // namespace headlight::HEADLIGHT_TARGET
