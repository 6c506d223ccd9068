// The shapes of attention in tile registers, for its table of kernels and for whoever lays out memory for it without
// linking them.
#pragma once

#include "kernels/attention/kernels.h"

namespace headlight::kernels {

// `of` with what its table of kernels has there.
[[nodiscard]] constexpr AttentionKernels with_shapes_of_tile_registers(AttentionKernels of) noexcept {
  of.lanes = 16;
  of.query_rows = 32;   // two tiles of rows
  of.key_panel = 32;    // two of keys
  of.value_panel = 16;  // one of columns
  of.wide_rows = 0;
  of.wide_columns = 0;
  of.sweep_rows = 16;
  of.narrow_sweep_rows = 16;
  of.sweeps_parts = true;
  of.short_rows = 0;
  of.short_keys = 0;
  of.numbers_of_word = 2;
  of.words_of_step = 16;
  of.keys_of_step = 32;
  return of;
}

}  // namespace headlight::kernels
