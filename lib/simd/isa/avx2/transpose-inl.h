// 4×4 blocks within each 128-bit part, and the parts among themselves.
#pragma once

#include "simd/isa/x86-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE void transpose(Vec (&rows)[kLanes]) {
  __m256 pairs[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(to_native(rows[i]), to_native(rows[i + 1]));
    pairs[i + 1] = _mm256_unpackhi_ps(to_native(rows[i]), to_native(rows[i + 1]));
  }
  // quads[4 g + c], part p: column 4 p + c of rows 4 g … 4 g + 3.
  __m256 quads[8];
#pragma GCC unroll 2
  for (int g = 0; g < 8; g += 4) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m256d upper = _mm256_castps_pd(pairs[g + h]);
      const __m256d lower = _mm256_castps_pd(pairs[g + 2 + h]);
      quads[g + 2 * h] = _mm256_castpd_ps(_mm256_unpacklo_pd(upper, lower));
      quads[g + 2 * h + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(upper, lower));
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    rows[c] = from_native(_mm256_permute2f128_ps(quads[c], quads[4 + c], 0x20));
    rows[4 + c] = from_native(_mm256_permute2f128_ps(quads[c], quads[4 + c], 0x31));
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
