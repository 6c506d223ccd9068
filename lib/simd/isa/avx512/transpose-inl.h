// 4×4 blocks within each 128-bit part, and the parts among themselves.
#pragma once

#include "simd/isa/x86-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE void transpose(Vec (&rows)[kLanes]) {
  __m512 pairs[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(to_native(rows[i]), to_native(rows[i + 1]));
    pairs[i + 1] = _mm512_unpackhi_ps(to_native(rows[i]), to_native(rows[i + 1]));
  }
  // quads[4 g + c], part p: column 4 p + c of rows 4 g … 4 g + 3.
  __m512 quads[16];
#pragma GCC unroll 4
  for (int g = 0; g < 16; g += 4) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m512d upper = _mm512_castps_pd(pairs[g + h]);
      const __m512d lower = _mm512_castps_pd(pairs[g + 2 + h]);
      quads[g + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(upper, lower));
      quads[g + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(upper, lower));
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512 even01 = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0x88);
    const __m512 odd01 = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0xdd);
    const __m512 even23 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0x88);
    const __m512 odd23 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0xdd);
    rows[c] = from_native(_mm512_shuffle_f32x4(even01, even23, 0x88));
    rows[4 + c] = from_native(_mm512_shuffle_f32x4(odd01, odd23, 0x88));
    rows[8 + c] = from_native(_mm512_shuffle_f32x4(even01, even23, 0xdd));
    rows[12 + c] = from_native(_mm512_shuffle_f32x4(odd01, odd23, 0xdd));
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
