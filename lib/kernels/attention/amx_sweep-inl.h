// A few rows over tile registers, against keys and values read where they lie: the bits of attend_tiles().
#pragma once

#include "kernels/attention/amx-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Sixteen words of at most sixteen keys as a tile of A, zeros where there are none.
inline void take_key_tile(const std::uint16_t* from, std::int64_t stride, std::int64_t keys, std::int64_t words,
                          float* tile) {
  const int count = static_cast<int>(smaller(words, kAmxWords));
  for (std::int64_t j = 0; j < kAmxRows; ++j) {
    Vec numbers = zero();
    if (j < keys) {
      const std::uint16_t* const at = from + j * stride;
      numbers = count == kAmxWords ? PairsOfBFloat16::load(at) : PairsOfBFloat16::load_partial(at, count);
    }
    store(numbers, tile + j * kAmxWords);
  }
}

// scores[r][j] of at most sixteen rows and the keys [first, last), first a multiple of sixteen: keys are the rows of
// the tiles, and queries their columns.
inline void scores_in_place(const kernels::AttentionBlock& block, std::int64_t first, std::int64_t last) {
  const kernels::QueryRows& query = block.query;
  const kernels::Operand& key = block.keys.key;
  const std::int64_t words = block.keys.head_dim / 2;
  alignas(64) float keys[kTileFloats], queries[kTileFloats], sums[kTileFloats];
  for (std::int64_t j = first; j < last; j += kAmxRows) {
    const auto* const at = key.numbers<std::uint16_t>() + j * key.stride;
    const std::int64_t count = smaller(kAmxRows, block.keys.count - j);
    _tile_zero(0);
    for (std::int64_t d = 0; d < query.head_dim; d += kAmxWords) {
      Vec square[kLanes];
      load_turned(query.data + d, query.stride, query.count, kLanes, square);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(square[i], queries + i * kAmxWords);
      const bool whole = count == kAmxRows && d + kAmxWords <= words;
      if (!whole) take_key_tile(at + 2 * d, key.stride, count, words - d, keys);
      write_memory();
      if (whole) {
        _tile_loadd(4, at + 2 * d, 2 * key.stride);
      } else {
        _tile_loadd(4, keys, 4 * kAmxWords);
      }
      _tile_loadd(6, queries, 4 * kAmxWords);
      HEADLIGHT_AMX_PRODUCT(0, 4, 6);
      write_memory();
    }
    _tile_stored(0, sums, 4 * kAmxWords);
    write_memory();
    Vec square[kLanes];
    load_turned(sums, kAmxWords, kLanes, kLanes, square);
#pragma GCC unroll 16
    for (int r = 0; r < kLanes; ++r) {
      if (r < query.count) store(square[r], block.scores + r * block.scores_stride + j);
    }
  }
}

inline void values_in_place(const kernels::AttentionBlock& block, const RowFactors& factors, const StepRange& steps) {
  alignas(64) float tile[kTileFloats], sums[2 * kTileFloats];
  for (std::int64_t column = 0; column < block.keys.value_dim; column += kAmxWords) {
    _tile_zero(0);
    for (std::int64_t j = steps.first; j < steps.last; j += kKeysOfStep) {
      take_value_tile(
          block.keys, j, column, [](std::int64_t) { return true; }, tile);
      write_memory();
      _tile_loadd(4, block.scores + j / 2, 4 * block.scores_stride);
      _tile_loadd(6, tile, 4 * kAmxWords);
      HEADLIGHT_AMX_PRODUCT(0, 4, 6);
      write_memory();
    }
    _tile_stored(0, sums, 8 * kAmxWords);
    write_memory();
    merge_columns(block, factors, column, smaller(kAmxWords, block.keys.value_dim - column), sums);
  }
}

// attend_sweep().
inline void sweep_tiles(const kernels::AttentionSweep& sweep) noexcept {
  AmxRegisters registers;
  const BlockRange range = range_of_sweep(sweep);
  const StepRange steps = steps_of(range);
  for (std::int64_t head = 0; head < sweep.heads; ++head) {
    const kernels::AttentionBlock block = block_of(sweep, head);
    registers.configure(kAmxRows);
    scores_in_place(block, steps.first, smaller(steps.last, block.keys.count));
    const RowFactors factors = weigh_tile_rows(block, range, steps);
    if (block.keys.values_not_finite) {
      values_exactly(block, factors, steps, registers);
    } else {
      registers.configure(block.query.count);
      values_in_place(block, factors, steps);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
