// NEON of 64-bit Arm.
#pragma once

#include "simd/isa/values.h"

namespace headlight::HEADLIGHT_TARGET {

// 12 × 2 sums, two vectors and a broadcast fill 27 of 32 registers.
inline constexpr Values kValues = {
    .lanes = 4,
    .has_fma = true,
    .widens_float16 = true,
    .interleaves_bytes = true,
    .gemm_tile_rows = 12,
    .gemm_panel_vectors = 2,
    .int4_tile_rows = 12,
    .gemm_rows_of_two_panels = 3,
    .gemm_panels_of_one_row = 0,
    .gemm_asks_for_panels = true,
    .attention_tile_vectors = 4,
    .attention_widens_in_tiles = true,
};

}  // namespace headlight::HEADLIGHT_TARGET
