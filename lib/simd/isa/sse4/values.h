// SSE4.2.
#pragma once

#include "simd/isa/values.h"

namespace headlight::HEADLIGHT_TARGET {

// 6 × 2 sums fill 15 of 16 registers, with the separate product.
inline constexpr Values kValues = {
    .lanes = 4,
    .interleaves_bytes = true,
    .gemm_tile_rows = 6,
    .gemm_panel_vectors = 2,
    .int4_tile_rows = 6,
    .gemm_rows_of_two_panels = 2,
    .gemm_panels_of_one_row = 0,
    .gemm_asks_for_panels = true,
    .attention_tile_vectors = 2,
};

}  // namespace headlight::HEADLIGHT_TARGET
