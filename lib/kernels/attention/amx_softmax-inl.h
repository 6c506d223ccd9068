// The softmax of 32 rows and one block of keys, with iterations of tile registers beside it.
#pragma once

#include "kernels/attention/amx_iterations-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Rows of scores a cache line more than a power of two apart: else their lines share sets of the first cache level.
inline constexpr std::int64_t kTileScoresStride = kKeysOfTileBlock + kLanes;

// What the softmax of a block of keys leaves for its rows' values, and the way from scores to weights.
struct TileFactors {
  alignas(64) float keep[kTileRows];
  float share[kTileRows];
  float minus_maximum[kTileRows];
  float scale[kTileRows];
};

// At most 32 rows of a block and a part of its keys.
struct TileItem {
  const kernels::AttentionBlock* rows;
  std::int64_t first;  // keys [first, last) of it, whole iterations
  std::int64_t last;
  bool all_seen;  // by all rows
  bool is_first;  // of these rows: nothing is in their states
  bool is_sink;   // but a sink
  bool is_last;   // of these rows in this call

  [[nodiscard]] HEADLIGHT_INLINE std::int64_t keys() const { return last - first; }
};

// What a row does not see becomes −∞.
inline void hide_unseen(const TileItem& item, float* scores) {
  const Vec nothing = broadcast(-kInfinity);
  for (std::int64_t r = 0; r < item.rows->query.count; ++r, scores += kTileScoresStride) {
    const std::int64_t begin = item.rows->seen.begin[r] - item.first;
    const std::int64_t end = item.rows->seen.end[r] - item.first;
    for (std::int64_t j = 0; j < item.keys(); j += kLanes) {
      if (begin <= j && j + kLanes <= end) continue;
      const auto before = [&](std::int64_t key) { return static_cast<int>(smaller(larger(key - j, 0), kLanes)); };
      const Vec seen = select(mask_first(before(begin)), nothing, load(scores + j));
      store(select(mask_first(before(end)), seen, nothing), scores + j);
    }
  }
}

// The greatest of each row's scores, lane by lane; NaN is passed over. kKeys: all of a block, or 0 for `keys`.
template <std::int64_t kKeys>
HEADLIGHT_INLINE Vec greatest(const float* scores, std::int64_t keys) {
  Vec maximum = broadcast(-kInfinity);
  if constexpr (kKeys > 0) {
#pragma GCC unroll 8
    for (std::int64_t j = 0; j < kKeys; j += kLanes) maximum = max(load(scores + j), maximum);
  } else {
#pragma GCC unroll 1
    for (std::int64_t j = 0; j < keys; j += kLanes) maximum = max(load(scores + j), maximum);
  }
  return maximum;
}

// Rows [first, first + 16), as find_maxima() and weigh_block() have it.
template <std::int64_t kKeys>
HEADLIGHT_INLINE void find_factors(const TileItem& item, std::int64_t first, float* scores, TileFactors& factors) {
  Vec rows[kLanes];
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) rows[r] = greatest<kKeys>(scores + (first + r) * kTileScoresStride, item.keys());
  const kernels::RowStates& state = item.rows->state;
  const int count = static_cast<int>(smaller(item.rows->query.count - first, kLanes));
  const Vec scale = broadcast(item.rows->modifiers.exponent_scale);
  const Vec of_block = scaled(max_of_each(rows), scale);
  const Vec running = item.is_first ? broadcast(-kInfinity) : load_lanes(state.maximum + first, count);
  const MergeWeights weights = merge_weights(running, of_block);
  const Vec minus = select(equal(of_block, broadcast(-kInfinity)), zero(), neg(of_block));
  store_lanes(weights.maximum, state.maximum + first, count);
  store(weights.keep, factors.keep + first);
  store(weights.share, factors.share + first);
  store(minus, factors.minus_maximum + first);
  store(scale, factors.scale + first);
  if (__builtin_expect(any_of(less_equal(broadcast(kLargeScore), abs(minus))), 0)) {
    for (std::int64_t r = first; r < first + count; ++r) {
      if (!is_large(factors.minus_maximum[r])) continue;
      scale_scores(scores + r * kTileScoresStride, {0, item.keys() / kLanes}, scale,
                   broadcast(factors.minus_maximum[r]));
      factors.scale[r] = 1.0f;
    }
  }
}

// A row's sums by lane into its running ones.
HEADLIGHT_INLINE void merge_row_sum(const TileItem& item, std::int64_t r, const TileFactors& factors, Vec sum) {
  float* const sums = item.rows->state.sums + r * kLanes;
  if (!item.is_first) {
    const Vec kept = item.is_sink ? select(mask_first(1), broadcast(1.0f), zero()) : load(sums);
    sum = fma(sum, broadcast(factors.share[r]), mul(kept, broadcast(factors.keep[r])));
  }
  store(sum, sums);
}

// Weights of rows, and iterations of tile registers beside them: so many rows to an iteration that both end together.
template <std::int64_t kKeys>
struct WeighRows {
  const TileItem& item;
  float* scores;
  const TileFactors& factors;
  const float* queries_ahead;  // of rows after these, which no prefetcher of the hardware finds
  std::int64_t row;            // next
  std::int64_t end;
  std::int64_t iterations;  // that are left

  // weigh() of a row, and part(0) … part(3) in between.
  template <class Part>
  HEADLIGHT_INLINE void weigh_row(std::int64_t r, const Part& part) const {
    float* const at = scores + r * kTileScoresStride;
    const kernels::QueryRows& query = item.rows->query;
    for (std::int64_t d = 0; d < query.head_dim; d += kFloatsOfLine)
      __builtin_prefetch(queries_ahead + r * query.stride + d);
    const Vec scale = broadcast(factors.scale[r]), minus = broadcast(factors.minus_maximum[r]);
    Vec even = zero(), odd = zero();
    const auto weigh_pair = [&](std::int64_t j) __attribute__((always_inline)) {
      const Vec first = exp2_nonpositive(fma(load(at + j), scale, minus));
      const Vec second = exp2_nonpositive(fma(load(at + j + kLanes), scale, minus));
      even = add(even, first);
      odd = add(odd, second);
      PairWeights::put(first, second, at, j / kLanes);
    };
    if constexpr (kKeys > 0) {
      static_assert(kKeys == 4 * 2 * kLanes);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        weigh_pair(2 * kLanes * i);
        part(i);
      }
    } else {
      part(0);
      part(1);
      for (std::int64_t j = 0; j < item.keys(); j += 2 * kLanes) weigh_pair(j);
      part(2);
      part(3);
    }
    merge_row_sum(item, r, factors, add(even, odd));
  }

  template <class Iteration>
  HEADLIGHT_INLINE void beside(const Iteration& iteration) {
    const std::int64_t left = end - row;
    if (left > iterations) {
      weigh_row(
          row, [&](int i) __attribute__((always_inline)) {
            if (i == 1) run_part<0>(iteration);
            if (i == 3) run_part<1>(iteration);
          });
      weigh_row(
          row + 1, [&](int i) __attribute__((always_inline)) {
            if (i == 1) run_part<2>(iteration);
            if (i == 3) run_part<3>(iteration);
          });
      row += 2;
    } else if (left > 0) {
      weigh_row(
          row, [&](int i) __attribute__((always_inline)) {
            if (i == 0) run_part<0>(iteration);
            if (i == 1) run_part<1>(iteration);
            if (i == 2) run_part<2>(iteration);
            if (i == 3) run_part<3>(iteration);
          });
      ++row;
    } else {
      Nothing{}.beside(iteration);
    }
    --iterations;
  }

  HEADLIGHT_INLINE void rest() {
    write_memory();
    for (; row < end; ++row) weigh_row(row, [](int) {});
    write_memory();
  }
};

// merge_vector() of all columns of row r.
template <bool kFirst, bool kSink, bool kEnds>
HEADLIGHT_INLINE void merge_tile_row(const kernels::AttentionBlock& rows, const TileFactors& factors, std::int64_t r,
                                     const float* sums) {
  const Vec keep = broadcast(factors.keep[r]), share = broadcast(factors.share[r]);
  float* const state = rows.state.out + r * rows.state.out_stride;
  const std::int64_t columns = rows.keys.value_dim;
  RowEnd end{};
  float* out = nullptr;
  if constexpr (kEnds) {
    rows.ends.sum[r] = sum_of_lanes(load(rows.state.sums + r * kLanes));
    end = row_end(rows.ends.sum[r]);
    out = rows.ends.out + r * rows.ends.out_stride;
  }
  const auto merge_one = [&](std::int64_t d, int count) __attribute__((always_inline)) {
    Vec sum = load(sums + d);
    if constexpr (!kFirst) sum = fma(sum, share, mul(kSink ? zero() : load(state + d), keep));
    if constexpr (kEnds) {
      store_lanes(ended(sum, end), out + d, count);
    } else {
      store(sum, state + d);
    }
  };
  std::int64_t d = 0;
#pragma GCC unroll 1
  for (; d + 4 * kLanes <= columns; d += 4 * kLanes) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) merge_one(d + v * kLanes, kLanes);
  }
#pragma GCC unroll 1
  for (; d < columns; d += kLanes) merge_one(d, static_cast<int>(smaller(kLanes, columns - d)));
}

template <bool kFirst, bool kSink, bool kEnds>
HEADLIGHT_INLINE void merge_all_rows(const TileItem& item, const TileFactors& factors, const TileSums& sums) {
#pragma GCC unroll 1
  for (std::int64_t r = 0; r < item.rows->query.count; ++r)
    merge_tile_row<kFirst, kSink, kEnds>(*item.rows, factors, r, sums.at + r * sums.stride);
}

// Sums of values into the running state or to their end.
inline void merge_tile_rows(const TileItem& item, const TileFactors& factors, const TileSums& sums) {
  const bool ends = item.is_last && item.rows->ends.out != nullptr;
  if (item.is_first) {
    ends ? merge_all_rows<true, false, true>(item, factors, sums)
         : merge_all_rows<true, false, false>(item, factors, sums);
  } else if (item.is_sink) {
    ends ? merge_all_rows<false, true, true>(item, factors, sums)
         : merge_all_rows<false, true, false>(item, factors, sums);
  } else {
    ends ? merge_all_rows<false, false, true>(item, factors, sums)
         : merge_all_rows<false, false, false>(item, factors, sums);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
