// NEON with I8MM, and with DotProd for rows that are alone.
#pragma once

#include "simd/isa/neon/dotprod-inl.h"
#include "simd/isa/neon/quads-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {.dots_bytes = true, .dots_signed_bytes = true, .multiplies_quads = true};

HEADLIGHT_INLINE IntVec multiply_quads_of_bytes(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(vmmlaq_s32(to_native_int(sum), as_bytes(a), as_bytes(b)));
}

}  // namespace headlight::HEADLIGHT_TARGET
