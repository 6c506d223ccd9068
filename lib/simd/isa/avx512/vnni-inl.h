// AVX512-VNNI.
#pragma once

#include <cstdint>

#include "simd/isa/avx512/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE IntVec dot_bytes(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(_mm512_dpbusd_epi32(to_native_int(sum), to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE void store_u8_crossed(IntVec v, std::uint8_t* to) {
  const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(_mm512_cvtepi32_epi8(to_native_int(v)), order));
}

}  // namespace headlight::HEADLIGHT_TARGET
