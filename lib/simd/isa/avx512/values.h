// AVX-512: F, BW, DQ, VL and CD.
#pragma once

#include "simd/isa/values.h"

namespace headlight::HEADLIGHT_TARGET {

// 9 × 3 sums, three vectors and a broadcast fill 31 of 32 registers: 12 loads for 27 products, where 12 × 2 has 14 for
// 24. Of nine rows of int4 two in three sums and totals would lie in memory. 6 × 4 sums of attention, four operands and
// a broadcast are 29.
inline constexpr Values kValues = {
    .lanes = 16,
    .has_fma = true,
    .has_scalef = true,
    .widens_float16 = true,
    .interleaves_bytes = true,
    .gemm_tile_rows = 9,
    .gemm_panel_vectors = 3,
    .int4_tile_rows = 6,
    .gemm_rows_of_two_panels = 2,
    .gemm_panels_of_one_row = 0,
    .gemm_asks_for_panels = true,
    .keeps_all_sums = true,
    .attention_tile_vectors = 4,
    .attention_widens_in_tiles = true,
};

}  // namespace headlight::HEADLIGHT_TARGET
