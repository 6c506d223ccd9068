// AVX-512 with AMX-INT8, and with AVX512-VNNI, as which A is quantized.
#pragma once

#include "simd/isa/avx512/vnni-inl.h"

// Tiles of sums, of A and of B. A macro, since intrinsics of g++ take the names of their tiles as they are written.
#define HEADLIGHT_AMX_PRODUCT(sums, a, b) _tile_dpbusd(sums, a, b)
#define HEADLIGHT_AMX_SIGNED_PRODUCT(sums, a, b) _tile_dpbssd(sums, a, b)

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {.dots_bytes = true, .amx_products = 32};

}  // namespace headlight::HEADLIGHT_TARGET
