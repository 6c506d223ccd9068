// NEON of 64-bit Arm. The set without a feature.
#pragma once

#include "simd/isa/neon/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {};

}  // namespace headlight::HEADLIGHT_TARGET
