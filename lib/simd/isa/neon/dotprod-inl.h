// DotProd.
#pragma once

#include <cstdint>

#include "simd/isa/neon/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE IntVec dot_bytes(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(vdotq_s32(to_native_int(sum), as_bytes(a), as_bytes(b)));
}
HEADLIGHT_INLINE void store_u8_crossed(IntVec v, std::uint8_t* to) {
  const uint8x8_t order = vcreate_u8(0x0c040800);
  const uint8x8_t bytes = vqtbl1_u8(vreinterpretq_u8_s32(to_native_int(v)), order);
  const std::uint32_t word = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
  __builtin_memcpy(to, &word, sizeof word);
}

}  // namespace headlight::HEADLIGHT_TARGET
