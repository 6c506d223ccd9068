// transpose() for the native registers: 4×4 blocks within each 128-bit part, and the parts among themselves.
#pragma once

namespace headlight::HEADLIGHT_TARGET {

#if defined(__aarch64__)

// rows ← their transpose, a 4×4 matrix.
HEADLIGHT_INLINE void transpose(Vec (&rows)[kLanes]) {
  const float32x4_t r0 = to_native(rows[0]), r1 = to_native(rows[1]);
  const float32x4_t r2 = to_native(rows[2]), r3 = to_native(rows[3]);
  const float64x2_t even01 = vreinterpretq_f64_f32(vtrn1q_f32(r0, r1)),
                    odd01 = vreinterpretq_f64_f32(vtrn2q_f32(r0, r1));
  const float64x2_t even23 = vreinterpretq_f64_f32(vtrn1q_f32(r2, r3)),
                    odd23 = vreinterpretq_f64_f32(vtrn2q_f32(r2, r3));
  rows[0] = from_native(vreinterpretq_f32_f64(vtrn1q_f64(even01, even23)));
  rows[1] = from_native(vreinterpretq_f32_f64(vtrn1q_f64(odd01, odd23)));
  rows[2] = from_native(vreinterpretq_f32_f64(vtrn2q_f64(even01, even23)));
  rows[3] = from_native(vreinterpretq_f32_f64(vtrn2q_f64(odd01, odd23)));
}

#elif defined(__AVX512F__)

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

#elif defined(__AVX2__)

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

#else

HEADLIGHT_INLINE void transpose(Vec (&rows)[kLanes]) {
  __m128 r0 = to_native(rows[0]), r1 = to_native(rows[1]), r2 = to_native(rows[2]), r3 = to_native(rows[3]);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  rows[0] = from_native(r0);
  rows[1] = from_native(r1);
  rows[2] = from_native(r2);
  rows[3] = from_native(r3);
}

#endif

}  // namespace headlight::HEADLIGHT_TARGET
