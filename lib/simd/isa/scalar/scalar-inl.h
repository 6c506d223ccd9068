// Plain C++. The set without a feature.
#pragma once

#include "simd/isa/scalar/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {};

}  // namespace headlight::HEADLIGHT_TARGET
