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
  store_picked(v, _mm_setr_epi8(0, 8, 4, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1), to);
}

}  // namespace headlight::HEADLIGHT_TARGET
