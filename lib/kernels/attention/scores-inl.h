// Scores of a block of rows against one panel of keys.
#pragma once

#include "kernels/attention/tile-inl.h"
#include "kernels/tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// scores[r][j] ← the sum. Unless null, maxima[r] becomes the greater of itself and the row's scores, lane by lane: here
// it hides behind the next tile's products, which a pass of its own does not.
struct StoreScores {
  float* scores;
  std::int64_t stride;
  float* maxima;

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void end(const A&, const B&, const Vec (&sums)[kRows][kVectors]) const {
    float* row = scores;
    const std::int64_t row_stride = stride;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r, row += row_stride) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) store(sums[r][v], row + v * kLanes);
    }
    if (maxima == nullptr) return;
    float* maximum = maxima;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r, maximum += kLanes) {
      Vec largest = load(maximum);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) largest = max(sums[r][v], largest);
      store(largest, maximum);
    }
  }
};

// Queries times a panel of keys [head_dim][…].
template <class Keys = TileVectors>
using ScoreTile = RegisterTile<TileRows, Keys, StoreScores>;

// The scores of `rows` ≤ kBlockRows rows with 1 … kScoreVectors vectors of keys. The panel comes from the first cache
// level for all groups of rows but the first. (A call of its own for each panel costs time.)
template <class Keys>
HEADLIGHT_INLINE void score_panel(ScoreTile<Keys> tile, std::int64_t rows, std::int64_t vectors) {
  const std::int64_t group_rows = rows_of_group<kScoreRows>(rows);
  for (std::int64_t left = rows; left > 0; left -= group_rows) {
    tile_of<kScoreRows, kScoreVectors, ScoreTile<Keys>>(smaller(group_rows, left), vectors)(tile);
    tile.a.at += group_rows * tile.a.stride;
    tile.finish.scores += group_rows * tile.finish.stride;
    if (tile.finish.maxima != nullptr) tile.finish.maxima += group_rows * kLanes;
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
