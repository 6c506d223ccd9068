// Weights times values of a tile.
#pragma once

#include "kernels/attention/kernels.h"
#include "kernels/attention/tile-inl.h"
#include "kernels/tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// out · (1 / sum), zeros where the sum is 0. Paths that skip a block and paths that merge nothing from it may differ in
// the sign of a zero; + 0 makes it +0.
struct RowEnd {
  Vec inverse;
  bool empty;
};
HEADLIGHT_INLINE RowEnd row_end(float sum) {
  if (__builtin_expect(sum == 0.0f, 0)) return {zero(), true};
  return {broadcast(1.0f / sum), false};
}
HEADLIGHT_INLINE Vec ended(Vec out, const RowEnd& end) { return end.empty ? zero() : fma(out, end.inverse, zero()); }

// What the values are weighed by, one number for each row.
struct RowFactors {
  float keep[kRowSlots];
  float share[kRowSlots];
};

// What the running state holds of row 0's values, and the way to the next row's.
struct KeptValues {
  const float* at;
  std::int64_t stride;
};
// Of columns from `column` on, at most a panel of them. Those of a state that is a sink's are zeros.
inline constexpr float kNoValues[kValuePanel] = {};
HEADLIGHT_INLINE KeptValues kept_values(const kernels::RowStates& state, std::int64_t r, std::int64_t column) {
  if (state.sink_only) return {kNoValues, 0};
  return {state.out + r * state.out_stride + column, state.out_stride};
}

// Of a word of two keys the halves that are seen, the first key's the lower one.
HEADLIGHT_INLINE std::int32_t seen_halves(bool first, bool second) {
  return (first ? 0xffff : 0) | (second ? kUpperHalf : 0);
}

// out[r] ← kept[r] · keep[r] + share[r] · Σ_j weights[r][j] · value[j], or with `first` the sum alone, over the keys
// j = seen_begin[r] … seen_end[r] − 1, in one ascending chain of fused multiply-adds from +0. Those that all rows see
// are the tile's iterations, keys `from` … `to` − 1; what only some see goes into the sums of their rows before and
// after. So a key that a row does not see never reaches its chain: 0 · NaN is NaN. kKeys = 2: an iteration is two keys'
// words; `from` and `to` are even; of a pair that a row sees half of, the other value is put to 0, as its weight is.
template <int kKeys = 1>
struct MergeValues {
  const std::int32_t* seen_begin;
  const std::int32_t* seen_end;
  std::int64_t from;
  std::int64_t to;
  bool same_keys;  // every row sees the tile's iterations and nothing else
  bool first;
  KeptValues kept;
  float* out;
  std::int64_t out_stride;
  const float* keep;
  const float* share;
  // Not null: what would go to `out` ends here, divided by its row's sum (0: zeros).
  float* final_out;
  std::int64_t final_out_stride;
  const float* final_sum;
  int final_lanes;  // of its last vector

  // Keys [key, last) of row r.
  template <class A, class B, int kVectors>
  HEADLIGHT_INLINE void add_keys(const A& a, const B& b, int r, std::int64_t key, std::int64_t last,
                                 Vec (&sums)[kVectors]) const {
    if (key >= last) return;
    for (std::int64_t k = key / kKeys - from / kKeys; kKeys * k < last - from; ++k) {
      Vec value[kVectors];
      b.row(k, value);
      if constexpr (kKeys == 2) {
        const std::int64_t even = from + 2 * k;
        const IntVec seen = broadcast_int(seen_halves(even >= seen_begin[r], even + 1 < seen_end[r]));
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) value[v] = as_float(and_int(as_int(value[v]), seen));
      }
      const Vec weight = broadcast(a.at[r * a.stride + k]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[v] = add_product<B>(weight, value[v], sums[v]);
    }
  }

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void start(const A& a, const B& b, Vec (&sums)[kRows][kVectors]) const {
    clear_sums(sums);
    if (same_keys) return;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) add_keys(a, b, r, seen_begin[r], smaller(seen_end[r], from), sums[r]);
  }

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void end(const A& a, const B& b, Vec (&sums)[kRows][kVectors]) const {
    if (!same_keys) {
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) add_keys(a, b, r, larger(seen_begin[r], to), seen_end[r], sums[r]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      float* row = out + r * out_stride;
      if (!first) {
        const float* held = kept.at + r * kept.stride;
        const Vec weight = broadcast(keep[r]);
        const Vec shared = broadcast(share[r]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(sums[r][v], shared, mul(load(held + v * kLanes), weight));
      }
      if (final_out == nullptr) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) store(sums[r][v], row + v * kLanes);
        continue;
      }
      row = final_out + r * final_out_stride;
      const RowEnd row_is = row_end(final_sum[r]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        store_lanes(ended(sums[r][v], row_is), row + v * kLanes, v == kVectors - 1 ? final_lanes : kLanes);
      }
    }
  }
};

// Nothing is asked for: what comes from memory is packed on the way, or swept.
struct FloatValues {
  template <bool kPartial>
  using Tile = RegisterTile<TileRows, TileMemory<kPartial, false>, MergeValues<>>;
  static constexpr int kKeys = 1;
  static constexpr bool kPanelsOnly = false;
};

// For 1 … kValueRows rows and `columns` ≤ kValuePanel of whole vectors or, with kPartial, one that ends sooner: that
// stands alone, since partial tiles of several vectors would be a third of all code here.
template <template <bool> class Tile, bool kPartial>
HEADLIGHT_INLINE TileFunction<Tile<kPartial>> value_tile_of(std::int64_t rows, std::int64_t columns) {
  constexpr int kMostVectors = kPartial ? 1 : kValueVectors;
  return tile_of<kValueRows, kMostVectors, Tile<kPartial>>(rows, kPartial ? 1 : columns / kLanes);
}

// The same sum for one row and one vector, key by key, where hidden values may be NaN or infinite.
template <class Numbers>
Vec exact_values(const float* weights, const typename Numbers::Storage* value, std::int64_t value_stride,
                 const float* scales, std::int64_t scale_stride, int count, std::int64_t begin, std::int64_t end,
                 const std::uint8_t* mask, std::int64_t mask_stride, bool attend) {
  Vec sum = zero();
  for (std::int64_t j = begin; j < end; ++j) {
    if ((mask[j * mask_stride] != 0) != attend) continue;
    const auto* at = value + j * value_stride;
    const Vec numbers = scaled_by_row<Numbers>(load_numbers<Numbers>(at, count), scales + j * scale_stride);
    sum = fma(broadcast(weights[j]), numbers, sum);
  }
  return sum;
}

}  // namespace headlight::HEADLIGHT_TARGET
