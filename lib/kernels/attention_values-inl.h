// Weights times values of a block of rows.
#pragma once

#include "kernels/attention_kernels.h"
#include "kernels/attention_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// out · (1 / sum), zeros where the sum is 0. Paths that skip a block and paths that merge nothing from it may differ in
// the sign of a zero; + 0 makes it +0.
HEADLIGHT_INLINE float inverse_of(float sum) { return sum == 0.0f ? 0.0f : 1.0f / sum; }
HEADLIGHT_INLINE Vec ended(Vec out, float inverse) {
  return inverse == 0.0f ? zero() : fma(out, broadcast(inverse), zero());
}

// What the values are weighed by, one number for each row.
struct RowFactors {
  float keep[kRowSlots];
  float share[kRowSlots];
};

// out[r] ← out[r] · keep[r] + share[r] · Σ_j weights[r][j] · value[j], or with `first` the sum alone, over the keys
// j = begin[r] … end[r] − 1. Those that all rows see are the tile's steps, `from` … `to` − 1. Those that only some see
// go into the sums of their rows before and after: a key that a row does not see never reaches its chain, since 0 · NaN
// is NaN.
struct MergeValues {
  const std::int32_t* first_key;
  const std::int32_t* last_key;
  std::int64_t from;
  std::int64_t to;
  bool same_keys;  // every row sees the tile's steps and nothing else
  bool first;
  float* out;
  std::int64_t out_stride;
  const float* keep;
  const float* share;
  // Not null: what would go to `out` ends here, divided by its row's sum.
  float* final_out;
  std::int64_t final_out_stride;
  const float* inverse;
  int final_lanes;  // of its last vector

  template <class A, class B, int kVectors>
  HEADLIGHT_INLINE void add_keys(const A& a, const B& b, int r, std::int64_t first_step, std::int64_t last_step,
                                 Vec (&sums)[kVectors]) const {
    for (std::int64_t j = first_step; j < last_step; ++j) {
      Vec value[kVectors];
      b.row(j, value);
      const Vec weight = broadcast(a.at[r * a.stride + j]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[v] = fma(weight, value[v], sums[v]);
    }
  }

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void start(const A& a, const B& b, Vec (&sums)[kRows][kVectors]) const {
    clear_sums(sums);
    if (same_keys) return;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) add_keys(a, b, r, first_key[r] - from, smaller(last_key[r], from) - from, sums[r]);
  }

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void end(const A& a, const B& b, Vec (&sums)[kRows][kVectors]) const {
    if (!same_keys) {
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) add_keys(a, b, r, larger(first_key[r], to) - from, last_key[r] - from, sums[r]);
    }
    float* row = out;
    if (!first) {
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r, row += out_stride) {
        const Vec kept = broadcast(keep[r]);
        const Vec shared = broadcast(share[r]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(sums[r][v], shared, mul(load(row + v * kLanes), kept));
      }
    }
    if (final_out == nullptr) {
      row = out;
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r, row += out_stride) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) store(sums[r][v], row + v * kLanes);
      }
      return;
    }
    row = final_out;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r, row += final_out_stride) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        store_lanes(ended(sums[r][v], inverse[r]), row + v * kLanes, v == kVectors - 1 ? final_lanes : kLanes);
      }
    }
  }
};

template <bool kPartial>
using ValueTile = RegisterTile<TileRows, TileMemory<kPartial, 2>, MergeValues>;

// The same sum for one row and one vector, key by key, where hidden values may be NaN or infinite.
inline Vec exact_values(const float* weights, const float* value, std::int64_t value_stride, int count,
                        std::int64_t begin, std::int64_t end, const std::uint8_t* mask, std::int64_t mask_stride,
                        bool attend) {
  Vec sum = zero();
  for (std::int64_t j = begin; j < end; ++j) {
    if ((mask[j * mask_stride] != 0) != attend) continue;
    const float* at = value + j * value_stride;
    sum = fma(broadcast(weights[j]), count == kLanes ? load(at) : load_partial(at, count), sum);
  }
  return sum;
}

}  // namespace headlight::HEADLIGHT_TARGET
