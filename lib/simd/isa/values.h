// What kernels ask of an instruction set. Each has a row, kValues, in its folder's values.h, and each target kFeature:
// those of the features that it is compiled with. What is left out is as in plain C++.
#pragma once

#include "simd/target-inl.h"

namespace headlight::HEADLIGHT_TARGET {

struct Values {
  int lanes = 1;  // floats of a vector
  // Whether fma() and fnma() round once. Elsewhere the product is rounded before the sum: an emulation of the single
  // rounding would cost more than it is worth.
  bool has_fma = false;
  bool has_scalef = false;         // v · 2ⁿ in one instruction, for any n, and operations in chosen lanes
  bool widens_float16 = false;     // binary16 to floats in one instruction
  bool interleaves_bytes = false;  // interleave_lower_bytes(), interleave_upper_bytes()

  // Products of matrices: a tile of sums (kernels/gemm/tile-inl.h), which fits the registers beside the vectors of B
  // and what is broadcast of A.
  int gemm_tile_rows = 2;
  int gemm_panel_vectors = 2;
  int int4_tile_rows = 2;             // which has totals beside its sums
  int gemm_rows_of_two_panels = 0;    // tiles of 2 … so many rows take two panels at once
  int gemm_panels_of_one_row = 2;     // which a tile of a single row takes; 0: as many as its type of number can
  bool gemm_asks_for_panels = false;  // by prefetches
  // Whether sums are held in registers, against the compiler's choice, where an iteration multiplies floats, too: see
  // kKeepsSums (kernels/tile-inl.h).
  bool keeps_all_sums = false;

  // Attention: vectors of a tile (kernels/attention/tile-inl.h).
  int attention_tile_vectors = 2;
  // Whether numbers that are widened on the way have tiles. Elsewhere a panel is widened at a time, as it is packed.
  bool attention_widens_in_tiles = false;
};

struct FeatureValues {
  bool dots_bytes = false;              // dot_bytes(): products of four bytes and four others, added to 32 bits
  bool dots_signed_bytes = false;       // and both are signed
  bool dots_bfloat16 = false;           // dot_bf16(): so with two bfloat16 numbers and two others
  bool clears_subnormal = false;        // which takes subnormal numbers for 0, and so does narrow_to_bf16()
  bool stores_normal_bfloat16 = false;  // store_normal_bf16()
  bool multiplies_quads = false;        // multiply_quads_of_bytes() or …_of_bf16(): two rows by two columns
  // The factor of tile registers over vectors, for GemmKernels::products; 0: there are none. A tile's row by all of B
  // takes a cycle (Intel's optimization manual), in which AVX-512 makes 32 products.
  int amx_products = 0;
};

}  // namespace headlight::HEADLIGHT_TARGET
