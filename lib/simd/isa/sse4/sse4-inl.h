// SSE4.2. The set without a feature.
#pragma once

#include "simd/isa/sse4/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {};

}  // namespace headlight::HEADLIGHT_TARGET
