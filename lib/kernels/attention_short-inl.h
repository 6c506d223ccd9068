// One head whose keys fit into one vector: nothing to pack, to merge or to carry on.
//
// Queries lie along the vectors here, one to a lane, and keys and values are read where they are: the maximum, the
// weights and their sum are then plain vector operations for all rows at once, where each row would need its own folds
// across lanes. Every chain and every sum is that of attend_block(), and so are the bits.
#pragma once

#include "kernels/attention_block-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// to[d][r] = from[r][d] for d < count ≤ kMost ≤ kLanes and r < rows ≤ kLanes, and zeros in the lanes behind. What the
// columns behind kMost would cost, the compiler leaves out.
template <int kMost>
HEADLIGHT_INLINE void turn_square(const float* from, std::int64_t stride, std::int64_t rows, int count, float* to) {
  Vec square[kLanes];
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) square[r] = r < rows ? load_lanes(from + r * stride, count) : zero();
  transpose(square);
#pragma GCC unroll 16
  for (int i = 0; i < kMost; ++i) {
    if (i < count) store(square[i], to + i * kLanes);
  }
}

// to[d][r] = from[r][d] for d < dims, as above.
inline void turn_rows(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dims, float* to) {
  constexpr int kFew = kLanes < 4 ? kLanes : 4;
  for (std::int64_t d = 0; d < dims; d += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, dims - d));
    if (count > kFew) {
      turn_square<kLanes>(from + d, stride, rows, count, to + d * kLanes);
    } else {
      turn_square<kFew>(from + d, stride, rows, count, to + d * kLanes);
    }
  }
}

// scores[j][r] = Σ_d key[j][d] · columns[d][r], one chain over ascending d, for kKeys keys.
template <int kKeys>
void score_columns(const float* key, std::int64_t key_stride, const float* columns, std::int64_t head_dim,
                   float* scores) {
  Vec sums[kKeys];
#pragma GCC unroll 16
  for (int j = 0; j < kKeys; ++j) sums[j] = zero();
  constexpr int kPointers = divide_up(kKeys, 3);
  const float* keys[kPointers];
#pragma GCC unroll 6
  for (int p = 0; p < kPointers; ++p) keys[p] = key + 3 * p * key_stride;
#pragma GCC unroll 2
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const Vec column = load(columns + d * kLanes);
#pragma GCC unroll 16
    for (int j = 0; j < kKeys; ++j) sums[j] = fma(broadcast(keys[j / 3][j % 3 * key_stride + d]), column, sums[j]);
  }
#pragma GCC unroll 16
  for (int j = 0; j < kKeys; ++j) store(sums[j], scores + j * kLanes);
}

using ScoreColumns = void (*)(const float*, std::int64_t, const float*, std::int64_t, float*);
template <int... kKeys>
ScoreColumns score_columns_of(std::int64_t keys, Counts<kKeys...>) {
  static constexpr ScoreColumns kFunctions[] = {score_columns<kKeys>...};
  return kFunctions[keys - 1];
}

// scores[j][r] ← −inf where row r does not see key j.
inline void hide_columns(const kernels::AttentionShort& head, float* scores) {
  float begin[kLanes] = {};
  float end[kLanes] = {};
  for (std::int64_t r = 0; r < head.rows; ++r) {
    begin[r] = static_cast<float>(head.begin[r]);
    end[r] = static_cast<float>(head.end[r]);
  }
  for (std::int64_t j = 0; j < head.keys; ++j) {
    const Vec key = broadcast(static_cast<float>(j));
    const Mask seen = mask_and(less_equal(load(begin), key), less(key, load(end)));
    store(select(seen, load(scores + j * kLanes), broadcast(-kInfinity)), scores + j * kLanes);
  }
}

// scores[j][r] ← weights; the rows' maxima and sums go to head.maximum and head.sum.
inline void weigh_columns(const kernels::AttentionShort& head, float* scores) {
  const Vec scale = broadcast(head.exponent_scale);
  Vec greatest[4];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) greatest[c] = broadcast(-kInfinity);
#pragma GCC unroll 16
  for (int j = 0; j < kLanes; ++j) {
    if (j < head.keys) greatest[j % 4] = max(load(scores + j * kLanes), greatest[j % 4]);
  }
  const Vec maximum = scaled(max(max(greatest[0], greatest[1]), max(greatest[2], greatest[3])), scale);
  const Vec minus_maximum = select(equal(maximum, broadcast(-kInfinity)), zero(), neg(maximum));
  store(maximum, head.maximum);
  const Mask small = less(abs(minus_maximum), broadcast(kLargeScore));
  const bool any_large = any_of(mask_not(small));
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < head.keys; ++j) {
    const Vec score = load(scores + j * kLanes);
    Vec distance = fma(score, scale, minus_maximum);
    if (any_large) distance = select(small, distance, add(scaled(score, scale), minus_maximum));
    store(exp2_nonpositive(distance), scores + j * kLanes);
  }
  // In the order of sum_of_lanes().
  Vec sums[kLanes];
#pragma GCC unroll 16
  for (int j = 0; j < kLanes; ++j) sums[j] = j < head.keys ? load(scores + j * kLanes) : zero();
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int j = 0; j < half; ++j) sums[j] = add(sums[j], sums[j + half]);
  }
  store(sums[0], head.sum);
}

// kRows rows of kVectors vectors of columns: Σ_j weights[j][r] · value[j], ascending, times inverse[r]. The order and
// the + 0 are those of ValueTile; here the weights lie as they were made, and no row is hidden from a key or empty.
struct ShortValues {
  const float* weights;  // [keys][kLanes]
  const float* inverse;
  const float* value;
  std::int64_t value_stride;
  std::int64_t keys;
  float* out;
  std::int64_t out_stride;
  int last_lanes;

  template <int kRows, int kVectors, bool kPartial>
  static void run(const ShortValues& tile);
};

template <int kRows, int kVectors, bool kPartial>
void ShortValues::run(const ShortValues& tile) {
  Vec sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = zero();
  }
  const float* value_of_key = tile.value;
  const float* weights = tile.weights;
  const float* const end = weights + tile.keys * kLanes;
#pragma GCC unroll 2
  for (; weights < end; weights += kLanes) {
    Vec value[kVectors];
    load_value<kVectors, kPartial>(value_of_key, tile.last_lanes, value);
    value_of_key += tile.value_stride;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec weight = broadcast(weights[r]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(weight, value[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const Vec inverse = broadcast(tile.inverse[r]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store_lanes(fma(sums[r][v], inverse, zero()), tile.out + r * tile.out_stride + v * kLanes,
                  kPartial && v == kVectors - 1 ? tile.last_lanes : kLanes);
    }
  }
}

inline void short_panel(const kernels::AttentionShort& head, ShortValues tile, std::int64_t column,
                        std::int64_t columns, bool partial) {
  const std::int64_t groups = divide_up(head.rows, kValueRows);
  // A division by what is not constant takes 4 ns: with few rows, a tenth of a head.
  const std::int64_t group_rows = groups == 1 ? head.rows : divide_up(head.rows, groups);
  tile.value = head.value + column;
  tile.last_lanes = static_cast<int>(columns);
  const float* const weights = tile.weights;
  const float* const inverse = tile.inverse;
  for (std::int64_t r = 0; r < head.rows; r += group_rows) {
    const std::int64_t rows = smaller(group_rows, head.rows - r);
    tile.weights = weights + r;
    tile.inverse = inverse + r;
    tile.out = head.out + r * head.out_stride + column;
    value_tile_of<ShortValues>(rows, columns / kLanes, partial)(tile);
  }
}

// out where all rows see all keys, and none has a sum of 0.
inline void all_short_values(const kernels::AttentionShort& head, const float* weights) {
  float inverse[kLanes];
  store(div(broadcast(1.0f), load(head.sum)), inverse);
  const ShortValues tile{weights, inverse, nullptr, head.value_stride, head.keys, nullptr, head.out_stride, kLanes};
  const std::int64_t whole = head.value_dim / kLanes * kLanes;
  for (std::int64_t column = 0; column < whole; column += kValuePanel) {
    short_panel(head, tile, column, smaller(kValuePanel, whole - column), false);
  }
  if (whole < head.value_dim) short_panel(head, tile, whole, head.value_dim - whole, true);
}

// It hands block_values() as many rows as there are lanes.
static_assert(kRowSlots >= kLanes, "RowFactors has room for fewer rows than there are lanes");

inline void attend_short(const kernels::AttentionShort& head) {
  float scores[kLanes * kLanes];
  turn_rows(head.query, head.query_stride, head.rows, head.head_dim, head.columns);
  score_columns_of(head.keys, typename CountsTo<kLanes>::type{})(head.key, head.key_stride, head.columns, head.head_dim,
                                                                 scores);
  if (!head.all_seen) hide_columns(head, scores);
  weigh_columns(head, scores);
  const bool any_empty = any_of(equal(load(head.sum), zero()));
  if (head.all_seen && !any_empty) return all_short_values(head, scores);

  Vec weights[kLanes];
#pragma GCC unroll 16
  for (int j = 0; j < kLanes; ++j) weights[j] = j < head.keys ? load(scores + j * kLanes) : zero();
  transpose(weights);
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) store(weights[r], scores + r * kLanes);

  kernels::AttentionBlock block{};
  block.rows = head.rows;
  block.keys = head.keys;
  block.value = head.value;
  block.value_stride = head.value_stride;
  block.value_panel_stride = kValuePanel;
  block.value_dim = head.value_dim;
  block.begin = head.begin;
  block.end = head.end;
  block.scores = scores;
  block.scores_stride = kLanes;
  block.first = true;
  block.final_out = head.out;
  block.final_out_stride = head.out_stride;
  block.final_sum = head.sum;
  block_values(block, {});
}

}  // namespace headlight::HEADLIGHT_TARGET
