// AVX-512 with AVX512-BF16.
#pragma once

#include "simd/isa/avx512/bf16-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {
    .dots_bfloat16 = true, .clears_subnormal = true, .stores_normal_bfloat16 = true};

}  // namespace headlight::HEADLIGHT_TARGET
