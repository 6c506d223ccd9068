// One head whose keys fit into a few vectors: nothing to pack, to merge or to carry on.
//
// Queries lie along the vectors here, one to a lane, and keys and values are read where they are: the maximum, the
// weights and their sum are then plain vector operations for all rows at once, where each row would need its own folds
// across lanes. Every chain and every sum is that of attend_block(), and so are the bits.
#pragma once

#include "kernels/attention/block-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Rows: two vectors, so that a key that is read once serves both. Keys: with more, what is saved by packing none is
// lost to caches that read them anew for every few rows.
inline constexpr int kShortRows = 2 * kLanes;
inline constexpr int kShortKeys = kLanes == 1 ? 4 : kLanes == 4 ? 48 : kLanes == 8 ? 96 : 64;

// to[d][r] = from[r][d] for d < dims, for kVectors vectors of rows; zeros in the lanes behind.
template <int kVectors>
HEADLIGHT_INLINE void turn_rows(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dims,
                                float* to) {
  constexpr int kFew = kLanes < 4 ? kLanes : 4;
  constexpr int kWidth = kVectors * kLanes;
  for (int v = 0; v < kVectors; ++v) {
    for (std::int64_t d = 0; d < dims; d += kLanes) {
      const int count = static_cast<int>(smaller(kLanes, dims - d));
      if (count > kFew) {
        turn_square<kLanes>(from + d, stride, rows, count, to + d * kWidth, kWidth);
      } else {
        turn_square<kFew>(from + d, stride, rows, count, to + d * kWidth, kWidth);
      }
    }
    from += kLanes * stride;
    to += kLanes;
    rows -= kLanes;
  }
}

// Keys that are scored at once: chains enough to hide how long one iteration takes, sums few enough for the registers.
template <int kVectors>
inline constexpr int kScoredKeys = kLanes == 1     ? 2
                                   : kVectors == 1 ? larger(kLanes, 8)
                                   : kLanes == 16  ? 12
                                                   : 6;

// scores[j][r] = Σ_d key[j][d] · columns[d][r] for all keys of a head, in equal shares: few chains wait for themselves.
// The tile's rows are keys here, and its vectors rows.
template <class Keys, int kVectors>
HEADLIGHT_INLINE void score_keys(const kernels::AttentionShort& head, float* scores) {
  constexpr int kMost = kScoredKeys<kVectors>;
  constexpr int kWidth = kVectors * kLanes;
  const kernels::Operand& key = head.keys.key;
  std::int64_t share = head.keys.count;
  if (share > kMost) share = divide_up(share, divide_up(share, kMost));
  for (std::int64_t j = 0; j < head.keys.count; j += share) {
    const ScoreTile<Keys> tile{{key.floats() + j * key.stride, key.stride},
                               {head.columns, kWidth},
                               head.query.head_dim,
                               {scores + j * kWidth, kWidth, nullptr}};
    tile_of<kMost, kVectors, ScoreTile<Keys>>(smaller(share, head.keys.count - j), kVectors)(tile);
  }
}

// scores[j][r] ← −inf where row first + r does not see key j. For one vector of rows, as seen_short_values(); the
// scores of one key and those of the next lie kWidth apart.
template <int kWidth>
void hide_columns(const kernels::AttentionShort& head, std::int64_t first, float* scores) {
  float begin[kLanes] = {};
  float end[kLanes] = {};
  const std::int64_t rows = smaller(kLanes, head.query.count - first);
  for (std::int64_t r = 0; r < rows; ++r) {
    begin[r] = static_cast<float>(head.seen.begin[first + r]);
    end[r] = static_cast<float>(head.seen.end[first + r]);
  }
  for (std::int64_t j = 0; j < head.keys.count; ++j) {
    const Vec key = broadcast(static_cast<float>(j));
    const Mask seen = mask_and(less_equal(load(begin), key), less(key, load(end)));
    store(select(seen, load(scores + j * kWidth), broadcast(-kInfinity)), scores + j * kWidth);
  }
}

// Vectors of rows that one head has, side by side in a row of scores.
template <int kVectors>
struct RowVectors {
  Vec of[kVectors];
};

template <int kVectors>
HEADLIGHT_INLINE RowVectors<kVectors> load_rows(const float* from) {
  RowVectors<kVectors> rows;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) rows.of[v] = load(from + v * kLanes);
  return rows;
}

template <int kVectors>
HEADLIGHT_INLINE RowVectors<kVectors> add_rows(const RowVectors<kVectors>& a, const RowVectors<kVectors>& b) {
  RowVectors<kVectors> sums;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) sums.of[v] = add(a.of[v], b.of[v]);
  return sums;
}

template <int kVectors>
HEADLIGHT_INLINE RowVectors<kVectors> greatest_of_columns(const float* scores, std::int64_t keys) {
  constexpr int kWidth = kVectors * kLanes;
  constexpr int kChains = 4 / kVectors;
  Vec greatest[kChains][kVectors];
#pragma GCC unroll 4
  for (int c = 0; c < kChains; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) greatest[c][v] = broadcast(-kInfinity);
  }
  std::int64_t j = 0;
  for (; j + kChains <= keys; j += kChains) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        greatest[c][v] = max(load(scores + (j + c) * kWidth + v * kLanes), greatest[c][v]);
      }
    }
  }
  for (; j < keys; ++j) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) greatest[0][v] = max(load(scores + j * kWidth + v * kLanes), greatest[0][v]);
  }
  RowVectors<kVectors> rows;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    rows.of[v] = greatest[0][v];
#pragma GCC unroll 4
    for (int c = 1; c < kChains; ++c) rows.of[v] = max(rows.of[v], greatest[c][v]);
  }
  return rows;
}

// Σ_j weights[j][r] over the keys kFirst, kFirst + kStride …, in the order of weigh() and sum_of_lanes(): of each lane
// even and odd vectors of keys apart, then the lanes by halves. What lies behind the last key would be zeros, and is
// left out.
template <int kVectors, int kFirst = 0, int kStride = 1>
HEADLIGHT_INLINE RowVectors<kVectors> sum_of_columns(const float* weights, std::int64_t keys) {
  constexpr int kWidth = kVectors * kLanes;
  if constexpr (kStride < kLanes) {
    const auto sum = sum_of_columns<kVectors, kFirst, 2 * kStride>(weights, keys);
    if (kFirst + kStride >= keys) return sum;
    return add_rows(sum, sum_of_columns<kVectors, kFirst + kStride, 2 * kStride>(weights, keys));
  } else {
    auto even = load_rows<kVectors>(weights + kFirst * kWidth);
    if (kFirst + kLanes >= keys) return even;
    auto odd = load_rows<kVectors>(weights + (kFirst + kLanes) * kWidth);
    for (std::int64_t key = kFirst + 2 * kLanes; key < keys; key += 2 * kLanes) {
      even = add_rows(even, load_rows<kVectors>(weights + key * kWidth));
      if (key + kLanes < keys) odd = add_rows(odd, load_rows<kVectors>(weights + (key + kLanes) * kWidth));
    }
    return add_rows(even, odd);
  }
}

// −maximum, and 0 where a row sees nothing.
HEADLIGHT_INLINE Vec minus_of_maximum(Vec maximum) {
  return select(equal(maximum, broadcast(-kInfinity)), zero(), neg(maximum));
}

// A greatest score that is smaller by magnitude has a product with the scale that neither overflows nor is large; what
// is not smaller may have one, and weigh_large_columns() looks again.
HEADLIGHT_INLINE float small_below(float exponent_scale) {
  if (exponent_scale > kCarefulScale) return 0;
  if (exponent_scale < kLargeScore / 2 / kCareful) return kCareful;
  return kLargeScore / 2 / exponent_scale;
}

// What weigh_columns() does where some greatest score is not that small, of one vector of rows. Apart from it, whose
// vectors stay in registers without a call.
[[gnu::noinline]] inline void weigh_large_columns(float* scores, std::int64_t width, std::int64_t keys, Vec scale,
                                                  Vec greatest_score, float* greatest) {
  const Vec maximum = scaled(greatest_score, scale);
  const Vec minus_maximum = minus_of_maximum(maximum);
  store(maximum, greatest);
  const Mask small = less(abs(minus_maximum), broadcast(kLargeScore));
  const bool any_large = any_of(mask_not(small));
  for (std::int64_t j = 0; j < keys; ++j) {
    const Vec score = load(scores + j * width);
    // The product of a score whose distance is the other one might overflow.
    Vec distance = fma(select(small, score, zero()), scale, minus_maximum);
    if (any_large) distance = select(small, distance, add(scaled_beside(score, scale, minus_maximum), minus_maximum));
    store(exp2_nonpositive(distance), scores + j * width);
  }
}

// scores[j][r] ← weights; the rows' maxima and sums go to `greatest` and `sum`. Returns the sums.
template <int kVectors>
HEADLIGHT_INLINE RowVectors<kVectors> weigh_columns(const kernels::AttentionShort& head, float* scores, float* greatest,
                                                    float* sum) {
  constexpr int kWidth = kVectors * kLanes;
  constexpr int kKeys = 4 / kVectors;
  const std::int64_t keys = head.keys.count;
  const Vec scale = broadcast(head.exponent_scale);
  const auto greatest_score = greatest_of_columns<kVectors>(scores, keys);
  const Vec bound = broadcast(small_below(head.exponent_scale));
  bool any_large = false;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const Vec score = greatest_score.of[v];
    any_large |= any_of(mask_not(mask_or(less(abs(score), bound), equal(score, broadcast(-kInfinity)))));
  }
  if (__builtin_expect(any_large, 0)) {
    for (int v = 0; v < kVectors; ++v) {
      weigh_large_columns(scores + v * kLanes, kWidth, keys, scale, greatest_score.of[v], greatest + v * kLanes);
    }
  } else {
    Vec minus_maximum[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Vec maximum = mul(greatest_score.of[v], scale);
      store(maximum, greatest + v * kLanes);
      minus_maximum[v] = minus_of_maximum(maximum);
    }
    const auto weigh_row = [&](float* row) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        store(exp2_nonpositive(fma(load(row + v * kLanes), scale, minus_maximum[v])), row + v * kLanes);
      }
    };
    std::int64_t j = 0;
    for (; j + kKeys <= keys; j += kKeys) {
#pragma GCC unroll 4
      for (int c = 0; c < kKeys; ++c) weigh_row(scores + (j + c) * kWidth);
    }
    for (; j < keys; ++j) weigh_row(scores + j * kWidth);
  }
  const auto sums = sum_of_columns<kVectors>(scores, keys);
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) store(sums.of[v], sum + v * kLanes);
  return sums;
}

// out[r] ← sum · inverse[r]: the end of MergeValues, where no row is empty. kPartial: the last vector ends after
// `lanes`.
template <bool kPartial>
struct EndValues {
  float* out;
  std::int64_t stride;
  const float* inverse;
  int lanes;

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void end(const A&, const B&, const Vec (&sums)[kRows][kVectors]) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec factor = broadcast(inverse[r]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        store_lanes(fma(sums[r][v], factor, zero()), out + r * stride + v * kLanes,
                    kPartial && v == kVectors - 1 ? lanes : kLanes);
      }
    }
  }
};

// Columns [column, column + columns) of out, of one value panel. kPartial: one vector, which ends where the values do.
template <class Numbers, bool kPartial>
void short_panel(const kernels::AttentionShort& head, const float* weights, std::int64_t width, const float* inverse,
                 std::int64_t column, std::int64_t columns) {
  using Tile = typename Numbers::template Tile<kPartial>;
  const std::int64_t group_rows = rows_of_group<kValueRows>(head.query.count);
  const int lanes = static_cast<int>(columns);
  const auto value = Numbers::values(head.keys, column);
  for (std::int64_t r = 0; r < head.query.count; r += group_rows) {
    const std::int64_t rows = smaller(group_rows, head.query.count - r);
    const Tile tile{{weights + r, width},
                    {value.data, value.stride, 0, lanes},
                    divide_up(head.keys.count, Numbers::kKeys),
                    {head.out + r * head.out_stride + column, head.out_stride, inverse + r, lanes}};
    value_tile_of<Numbers::template Tile, kPartial>(rows, columns)(tile);
  }
}

// out where all rows see all keys, and none has a sum of 0. The weights lie as they were made, [keys][rows].
template <class Numbers>
HEADLIGHT_INLINE void short_values(const kernels::AttentionShort& head, const float* weights, std::int64_t width,
                                   const float* inverse) {
  const std::int64_t whole = head.keys.value_dim / kLanes * kLanes;
  for (std::int64_t column = 0; column < whole; column += kValuePanel) {
    short_panel<Numbers, false>(head, weights, width, inverse, column, smaller(kValuePanel, whole - column));
  }
  if constexpr (kLanes > 1) {
    if (whole == head.keys.value_dim) return;
    short_panel<Numbers, true>(head, weights, width, inverse, whole, head.keys.value_dim - whole);
  }
}

static_assert(kRowSlots >= kLanes, "RowFactors has room for fewer rows than block_values() is handed here");

// Keys and values that are floats.
struct ShortFloats {
  using Keys = TileVectors;
  using Values = FloatValues;
  template <bool kPartial>
  using Tile = RegisterTile<TileColumns, TileMemory<kPartial, false>, EndValues<kPartial>>;
  static constexpr int kKeys = 1;

  // From `column` on.
  static HEADLIGHT_INLINE ValuePanel<StoredFloat32> values(const kernels::KeyValueBlock& keys, std::int64_t column) {
    return {keys.value.floats() + column, keys.value.stride};
  }
  // Weights [keys][width] as the tile takes them.
  static HEADLIGHT_INLINE const float* weights_of(float* weights, std::int64_t, std::int64_t) { return weights; }
  // One row's after the other, as block_values() takes them.
  static HEADLIGHT_INLINE void give_weights(const kernels::AttentionBlock&) {}
};

// out where some row does not see some key, for one vector of rows: those from `first` on.
template <class Numbers, int kWidth>
void seen_short_values(const kernels::AttentionShort& head, std::int64_t first, const float* columns) {
  float* const weights = head.columns;  // the queries are scored
  for (std::int64_t j = 0; j < head.keys.count; j += kLanes) {
    turn_square<kLanes>(columns + j * kWidth, kWidth, head.keys.count - j, kLanes, weights + j, kShortKeys);
  }
  kernels::AttentionBlock block{};
  block.query.count = smaller(kLanes, head.query.count - first);
  block.keys = head.keys;
  block.seen = {head.seen.begin + first, head.seen.end + first, false};
  block.scores = weights;
  block.scores_stride = kShortKeys;
  block.state.first = true;
  block.ends = {head.out + first * head.out_stride, head.out_stride, head.sum + first};
  Numbers::give_weights(block);
  block_values<typename Numbers::Values>(block, {});
}

// Asks for where each row of values begins: the rows lie apart, and what would read them waits behind the weights.
template <class Numbers>
HEADLIGHT_INLINE void ask_for_values(const kernels::AttentionShort& head) {
  const auto value = Numbers::values(head.keys, 0);
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < head.keys.count; j += Numbers::kKeys) {
    __builtin_prefetch(value.data + j / Numbers::kKeys * value.stride);
  }
}

template <class Numbers, int kVectors>
void attend_short_rows(const kernels::AttentionShort& head) {
  constexpr int kWidth = kVectors * kLanes;
  float scores[kShortKeys * kWidth];
  turn_rows<kVectors>(head.query.data, head.query.stride, head.query.count, head.query.head_dim, head.columns);
  score_keys<typename Numbers::Keys, kVectors>(head, scores);
  ask_for_values<Numbers>(head);
  float inverse[kWidth];
  bool any_empty = false;
  for (int r = 0; r < kWidth && !head.all_seen; r += kLanes) hide_columns<kWidth>(head, r, scores + r);
  const auto sums = weigh_columns<kVectors>(head, scores, head.maximum, head.sum);
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const Mask empty = equal(sums.of[v], zero());
    store(div(broadcast(1.0f), select(empty, broadcast(1.0f), sums.of[v])), inverse + v * kLanes);
    any_empty = any_empty || any_of(empty);
  }
  if (head.all_seen && !any_empty) {
    return short_values<Numbers>(head, Numbers::weights_of(scores, head.keys.count, kWidth), kWidth, inverse);
  }
  for (int r = 0; r < kWidth; r += kLanes) seen_short_values<Numbers, kWidth>(head, r, scores + r);
}

template <class Numbers>
void attend_short_of(const kernels::AttentionShort& head) noexcept {
  if (head.query.count <= kLanes) {
    attend_short_rows<Numbers, 1>(head);
  } else {
    attend_short_rows<Numbers, 2>(head);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
