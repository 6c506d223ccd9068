// AVX-512: F, BW, DQ, VL and CD. The set without a feature.
#pragma once

#include "simd/isa/avx512/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {};

}  // namespace headlight::HEADLIGHT_TARGET
