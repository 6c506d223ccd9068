// AVX2 with AVX-VNNI.
#pragma once

#include <cstdint>

#include "simd/isa/avx2/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {.dots_bytes = true};

HEADLIGHT_INLINE IntVec dot_bytes(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(_mm256_dpbusd_avx_epi32(to_native_int(sum), to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE void store_u8_crossed(IntVec v, std::uint8_t* to) {
  const __m256i picked = pick_bytes(v, _mm_setr_epi8(0, 8, 4, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(picked), _mm256_extracti128_si256(picked, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), both);
}

}  // namespace headlight::HEADLIGHT_TARGET
