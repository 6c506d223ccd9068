// NEON with DotProd.
#pragma once

#include "simd/isa/neon/dotprod-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {.dots_bytes = true, .dots_signed_bytes = true};

}  // namespace headlight::HEADLIGHT_TARGET
