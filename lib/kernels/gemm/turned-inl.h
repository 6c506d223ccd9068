// One or two rows by a B that lies by columns, [N, K]: squares of it are turned over in registers and multiplied there.
// A packed panel would be written for a single tile, which takes longer than to read B.
#pragma once

#include <cstdint>

#include "kernels/gemm/numbers.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/tile-inl.h"
#include "kernels/square-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {  // of the one file that includes this

// Vectors of columns that are multiplied side by side: each is a chain of multiply-adds, which alone would take longer
// than to turn the squares, but those of sixteen lanes.
constexpr int kTurnedVectors = kLanes < 16 ? kGemmPanelVectors : 1;
// Numbers of a column that are multiplied before those of the next vector of columns. Columns may lie a multiple of
// 4 KiB apart and then share one set of the first-level cache: more than eight would lose lines before they are read
// to their end.
constexpr std::int64_t kTurnedDepth = kTurnedVectors * kLanes > 8 ? 64 : kLanes;

// What is left of K behind the squares: one function for all numbers of rows.
template <int kColumns>
[[gnu::noinline]] void turn_last(const float* from, std::int64_t stride, std::int64_t depth, float* panel) noexcept {
  gemm_pack_columns(from, stride, depth, kColumns, panel);
}

// The first kTurnedVectors vectors of a tile's columns.
template <int kRows>
HEADLIGHT_INLINE void multiply_turned(const kernels::GemmTile& tile, const float* b, float* out) {
  const std::int64_t stride = tile.b_depth_stride;
  Vec sums[kTurnedVectors][kRows];
#pragma GCC unroll 4
  for (auto& of_vector : sums) {
#pragma GCC unroll 4
    for (Vec& sum : of_vector) sum = zero();
  }
  const auto add_element = [&](std::int64_t k, Vec element, Vec(&to)[kRows]) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) to[r] = fma(broadcast(tile.a[r * tile.a_stride + k]), element, to[r]);
  };
  constexpr int kColumns = kTurnedVectors * kLanes;
  const std::int64_t whole = tile.depth / kLanes * kLanes;
  for (std::int64_t first = 0; first < whole; first += kTurnedDepth) {
    const std::int64_t last = smaller(first + kTurnedDepth, whole);
#pragma GCC unroll 4
    for (int v = 0; v < kTurnedVectors; ++v) {
#pragma GCC unroll 1
      for (std::int64_t k = first; k < last; k += kLanes) {
        Vec square[kLanes];
        load_turned(b + v * kLanes * stride + k, stride, kLanes, kLanes, square);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) add_element(k + i, square[i], sums[v]);
      }
    }
  }
  std::int64_t k = whole;
  if (k < tile.depth) {
    alignas(64) float last[kLanes * kColumns];
    turn_last<kColumns>(b + k, stride, tile.depth - k, last);
    for (const float* row = last; k < tile.depth; ++k, row += kColumns) {
#pragma GCC unroll 4
      for (int v = 0; v < kTurnedVectors; ++v) add_element(k, load(row + v * kLanes), sums[v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kTurnedVectors; ++v) {
      float* const to = out + r * tile.out_stride + v * kLanes;
      store(mul(broadcast(tile.alpha), tile.accumulate ? add(load(to), sums[v][r]) : sums[v][r]), to);
    }
  }
}

// A GemmTile of a whole panel, whose columns lie tile.b_depth_stride apart.
template <int kRows>
void run_turned_tile(const kernels::GemmTile& tile) noexcept {
  for (int column = 0; column < kGemmPanelWidth; column += kTurnedVectors * kLanes) {
    multiply_turned<kRows>(tile, tile.b + column * tile.b_depth_stride, tile.out + column);
  }
}

// GemmNumbers::turned_tiles.
constexpr kernels::GemmTileFunction kTurnedTiles[kernels::kTurnedRows] = {run_turned_tile<1>, run_turned_tile<2>};

}  // namespace
}  // namespace headlight::HEADLIGHT_TARGET
