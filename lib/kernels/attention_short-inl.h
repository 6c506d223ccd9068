// One head whose keys fit into one vector: nothing to pack, to merge or to carry on.
//
// Queries lie along the vectors here, one to a lane, and keys and values are read where they are: the maximum, the
// weights and their sum are then plain vector operations for all rows at once, where each row would need its own folds
// across lanes. Every chain and every sum is that of attend_block(), and so are the bits.
#pragma once

#include "kernels/attention_block-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// to[d][r] = from[r][d] for r < rows ≤ kLanes, and zeros in the lanes behind.
inline void turn_rows(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dims, float* to) {
  for (std::int64_t d = 0; d < dims; d += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, dims - d));
    Vec square[kLanes];
#pragma GCC unroll 16
    for (int r = 0; r < kLanes; ++r) square[r] = r < rows ? load_lanes(from + r * stride + d, count) : zero();
    transpose(square);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (i < count) store(square[i], to + (d + i) * kLanes);
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
  constexpr int kPointers = (kKeys + 2) / 3;
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
  Vec maximum = broadcast(-kInfinity);
  for (std::int64_t j = 0; j < head.keys; ++j) maximum = max(load(scores + j * kLanes), maximum);
  maximum = scaled(maximum, scale);
  const Vec minus_maximum = select(equal(maximum, broadcast(-kInfinity)), zero(), neg(maximum));
  store(maximum, head.maximum);
  const bool any_large = is_large(max_of_lanes(abs(minus_maximum)));
  const Mask small = less(abs(minus_maximum), broadcast(kLargeScore));
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

inline void attend_short(const kernels::AttentionShort& head) {
  float scores[kLanes * kLanes];
  turn_rows(head.query, head.query_stride, head.rows, head.head_dim, head.columns);
  score_columns_of(head.keys, typename CountsTo<kLanes>::type{})(head.key, head.key_stride, head.columns, head.head_dim,
                                                                 scores);
  if (!head.all_seen) hide_columns(head, scores);
  weigh_columns(head, scores);

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
