// Scores of a block of rows against one panel of keys.
#pragma once

#include "kernels/attention_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// scores[r][j] = Σ_d query[r][d] · panel[d][j], one chain of fused multiply-adds over ascending d from +0, for
// j < kVectors · kLanes; panel [head_dim] rows, panel_stride apart. maxima[r] becomes the greater of itself and the
// row's scores, lane by lane: here it hides behind the next tile's products, a pass of its own costs 1–2 %.
struct ScorePanel {
  const float* query;
  std::int64_t query_stride;
  const float* panel;
  std::int64_t panel_stride;
  std::int64_t head_dim;
  float* scores;
  std::int64_t scores_stride;
  float* maxima;
};

template <int kRows, int kVectors>
void score_tile(const ScorePanel& tile) {
  const float* query = tile.query;
  const std::int64_t query_stride = tile.query_stride;
  const float* panel = tile.panel;
  const std::int64_t panel_stride = tile.panel_stride;
  Vec sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = zero();
  }
  // A pointer for every third row: row and twice the row stride are addressing modes, twelve pointers are registers.
  constexpr int kPointers = divide_up(kRows, 3);
  const float* rows[kPointers];
#pragma GCC unroll 4
  for (int p = 0; p < kPointers; ++p) rows[p] = query + 3 * p * query_stride;
#pragma GCC unroll 4
  for (std::int64_t d = 0, head_dim = tile.head_dim; d < head_dim; ++d) {
    Vec keys[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) keys[v] = load(panel + v * kLanes);
    panel += panel_stride;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec q = broadcast(rows[r / 3][r % 3 * query_stride + d]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(q, keys[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    float* scores = tile.scores + r * tile.scores_stride;
    float* maximum = tile.maxima + r * kLanes;
    Vec largest = load(maximum);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store(sums[r][v], scores + v * kLanes);
      largest = max(sums[r][v], largest);
    }
    store(largest, maximum);
  }
}

using ScoreTile = void (*)(const ScorePanel&);

template <int... kCounts>
struct Counts {};

template <int kCount, int... kCounts>
struct CountsTo : CountsTo<kCount - 1, kCount, kCounts...> {};
template <int... kCounts>
struct CountsTo<0, kCounts...> {
  using type = Counts<kCounts...>;
};

template <int kVectors, int... kRows>
ScoreTile score_tile_of(std::int64_t rows, Counts<kRows...>) {
  static constexpr ScoreTile kTiles[] = {score_tile<kRows, kVectors>...};
  return kTiles[rows - 1];
}

template <int... kVectors>
ScoreTile score_tile_of(std::int64_t rows, std::int64_t vectors, Counts<kVectors...>) {
  using ForRows = ScoreTile (*)(std::int64_t, CountsTo<kScoreRows>::type);
  static constexpr ForRows kTiles[] = {&score_tile_of<kVectors>...};
  return kTiles[vectors - 1](rows, {});
}

// The scores of `rows` ≤ kBlockRows rows with 1 … kScoreVectors vectors of keys. The panel comes from the first cache
// level for all groups of rows but the first.
inline void score_panel(ScorePanel panel, std::int64_t rows, std::int64_t vectors) {
  const std::int64_t groups = divide_up(rows, kScoreRows);
  const std::int64_t group_rows = divide_up(rows, groups);
  for (std::int64_t left = rows; left > 0; left -= group_rows) {
    score_tile_of(smaller(group_rows, left), vectors, CountsTo<kScoreVectors>::type{})(panel);
    panel.query += group_rows * panel.query_stride;
    panel.scores += group_rows * panel.scores_stride;
    panel.maxima += group_rows * kLanes;
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
