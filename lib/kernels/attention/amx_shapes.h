// The shapes of attention in tile registers, for its table of kernels and for whoever lays out memory for it without
// linking them.
#pragma once

#include "kernels/attention/kernels.h"

namespace headlight::kernels {

// Sums of values of a row, and a cache line more: see kTileScoresStride in amx_softmax-inl.h.
[[nodiscard]] [[gnu::always_inline]] constexpr std::int64_t tile_sums_stride(std::int64_t value_dim) noexcept {
  return filled_up(value_dim, 32) + 16;
}

// What a call wants in the place of scores: those of two times 32 rows by 128 keys, two times 32 rows of queries, and
// 32 rows of sums. Inlined always: see simd/integers.h.
[[nodiscard]] [[gnu::always_inline]] constexpr std::int64_t tile_block_floats(std::int64_t key_words,
                                                                              std::int64_t value_dim) noexcept {
  return 32 * (2 * (128 + 16) + 2 * key_words + tile_sums_stride(value_dim));
}

// Floats of a sweep's room: for two iterations' sums, two tiles each, and the queries of some rows turned over, with a
// vector behind them; and once scores are done, for two iterations' values, four tiles each.
inline constexpr int kSweptScoreFloats = 2 * 2 * 256;
inline constexpr int kSweptTileFloats = 2 * 4 * 256;
[[nodiscard]] constexpr std::int64_t floats_of_tile_sweep(std::int64_t rows, std::int64_t words) noexcept {
  const std::int64_t turned = kSweptScoreFloats + rows * words + 16;
  return turned > kSweptTileFloats ? turned : kSweptTileFloats;
}

// `of` with what its table of kernels has there.
[[nodiscard]] constexpr AttentionKernels with_shapes_of_tile_registers(AttentionKernels of) noexcept {
  of.lanes = 16;
  of.query_rows = 32;  // two tiles of rows
  of.call_rows = 256;
  of.call_blocks = 4;
  of.key_block = 128;
  of.key_panel = 32;    // two of keys
  of.value_panel = 16;  // one of columns
  of.wide_rows = 0;
  of.wide_columns = 0;
  of.sweep_rows = 16;
  of.narrow_sweep_rows = 16;
  of.sweeps_parts = true;
  of.short_rows = 16;
  of.short_keys = 64;
  of.numbers_of_word = 2;
  of.words_at_once = 16;
  of.keys_at_once = 32;
  return of;
}

}  // namespace headlight::kernels
