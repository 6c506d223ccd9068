// Scores of a tile: rows of queries against one panel of keys.
#pragma once

#include "kernels/attention_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// scores[r][j] = Σ_d query[r][d] · panel[d][j], one chain of fused multiply-adds over ascending d from +0, for
// j < kVectors · kLanes; panel [head_dim] rows, panel_stride apart. maxima[r] becomes the greater of itself and the
// row's scores, lane by lane (of whole panels only): here it hides behind the next tile's products, a pass of its own
// costs 1–2 %.
template <int kRows, int kVectors>
void score_tile(const float* query, std::int64_t query_stride, const float* panel, std::int64_t panel_stride,
                std::int64_t head_dim, float* scores, std::int64_t scores_stride, [[maybe_unused]] float* maxima) {
  Vec sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = zero();
  }
  // A pointer for every third row: row and twice the row stride are addressing modes, twelve pointers are registers.
  constexpr int kPointers = (kRows + 2) / 3;
  const float* rows[kPointers];
#pragma GCC unroll 4
  for (int p = 0; p < kPointers; ++p) rows[p] = query + 3 * p * query_stride;
#pragma GCC unroll 4
  for (std::int64_t d = 0; d < head_dim; ++d) {
    Vec keys[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) keys[v] = load(panel + v * kLanes);
    panel += panel_stride;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec q = broadcast(rows[r / 3][r % 3 * query_stride + d]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(q, keys[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store(sums[r][v], scores + r * scores_stride + v * kLanes);
    if constexpr (kVectors == kScoreVectors) {
      store(max(max(sums[r][0], sums[r][1]), load(maxima + r * kLanes)), maxima + r * kLanes);
    }
  }
}

using ScoreTile = void (*)(const float*, std::int64_t, const float*, std::int64_t, std::int64_t, float*, std::int64_t,
                           float*);

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

// The tile for 1 … kScoreRows rows, and a narrow one for a panel's end.
inline ScoreTile score_tile_of(std::int64_t rows, std::int64_t keys) {
  constexpr CountsTo<kScoreRows>::type kCounts{};
  return keys <= kLanes ? score_tile_of<1>(rows, kCounts) : score_tile_of<kScoreVectors>(rows, kCounts);
}

}  // namespace headlight::HEADLIGHT_TARGET
