// AVX-512 with AVX512-VNNI.
#pragma once

#include "simd/isa/avx512/vnni-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {.dots_bytes = true};

}  // namespace headlight::HEADLIGHT_TARGET
