// AVX512-BF16.
#pragma once

#include <cstdint>

#include "simd/isa/avx512/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// The two bfloat16 numbers in each lane.
HEADLIGHT_INLINE __m512bh as_pairs(Vec v) { return (__m512bh)_mm512_castps_si512(to_native(v)); }
HEADLIGHT_INLINE Vec dot_bf16(Vec a, Vec b, Vec sum) {
  return from_native(_mm512_dpbf16_ps(to_native(sum), as_pairs(a), as_pairs(b)));
}
HEADLIGHT_INLINE Vec narrow_to_bf16(Vec first, Vec second) {
  return from_native(_mm512_castsi512_ps((__m512i)_mm512_cvtne2ps_pbh(to_native(second), to_native(first))));
}
HEADLIGHT_INLINE Vec pair_to_bf16(Vec first, Vec second) {
  alignas(64) static constexpr std::uint16_t kInTurns[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                             21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                             11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto numbers = (__m512i)_mm512_cvtne2ps_pbh(to_native(second), to_native(first));
  return from_native(_mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(kInTurns), numbers)));
}
HEADLIGHT_INLINE Vec interleave_lower_bf16(Vec a, Vec b) {
  return from_native(
      _mm512_castsi512_ps(_mm512_unpacklo_epi16(_mm512_castps_si512(to_native(a)), _mm512_castps_si512(to_native(b)))));
}
HEADLIGHT_INLINE Vec interleave_upper_bf16(Vec a, Vec b) {
  return from_native(
      _mm512_castsi512_ps(_mm512_unpackhi_epi16(_mm512_castps_si512(to_native(a)), _mm512_castps_si512(to_native(b)))));
}
// Stores v rounded and returns true, unless it has subnormal numbers, which the instruction would take for 0.
HEADLIGHT_INLINE bool store_normal_bf16(Vec v, std::uint16_t* to) {
  constexpr int kSubnormal = 0x20;
  if (_mm512_fpclass_ps_mask(to_native(v), kSubnormal) != 0) [[unlikely]]
    return false;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(to_native(v)));
  return true;
}

}  // namespace headlight::HEADLIGHT_TARGET
