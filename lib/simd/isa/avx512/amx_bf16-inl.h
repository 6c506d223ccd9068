// AVX-512 with AMX-BF16, and with AVX512-BF16, which rounds A.
#pragma once

#include "simd/isa/avx512/bf16-inl.h"

// Tiles of sums, of A and of B. A macro, since intrinsics of g++ take the names of their tiles as they are written.
#define HEADLIGHT_AMX_PRODUCT(sums, a, b) _tile_dpbf16ps(sums, a, b)

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {
    .dots_bfloat16 = true, .clears_subnormal = true, .stores_normal_bfloat16 = true, .amx_products = 16};

}  // namespace headlight::HEADLIGHT_TARGET
