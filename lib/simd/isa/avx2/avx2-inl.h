// AVX2, FMA and F16C. The set without a feature.
#pragma once

#include "simd/isa/avx2/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {};

}  // namespace headlight::HEADLIGHT_TARGET
