// Weights times values of a tile.
#pragma once

#include "kernels/attention_scores-inl.h"
#include "kernels/attention_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// out[r] ← out[r] · keep[r] + share[r] · Σ_j weights[r][j] · value[j], j from begin[r] to end[r] − 1 in one ascending
// chain of fused multiply-adds from +0; with `first`, the sum alone. Keys that a row does not see never reach its
// chain, since 0 · NaN is NaN.
struct ValueTile {
  const float* weights;
  std::int64_t weights_stride;
  const float* value;
  std::int64_t value_stride;
  const std::int32_t* begin;
  const std::int32_t* end;
  bool same_keys;  // every row sees what row 0 sees
  float* out;
  std::int64_t out_stride;
  const float* keep;
  const float* share;
  bool first;
  int last_lanes;  // lanes of the last vector that value and final_out have
  // Not null: what would go to `out` ends here, divided by its row's sum (0: zeros).
  float* final_out;
  std::int64_t final_out_stride;
  const float* final_sum;

  template <int kRows, int kVectors, bool kPartial>
  static void run(const ValueTile& tile) noexcept;
};

// out · (1 / sum), zeros where the sum is 0. Paths that skip a block and paths that merge nothing from it may differ in
// the sign of a zero; + 0 makes it +0.
struct RowEnd {
  Vec inverse;
  bool empty;
};
HEADLIGHT_INLINE RowEnd row_end(float sum) { return {broadcast(1.0f / sum), sum == 0.0f}; }
HEADLIGHT_INLINE Vec ended(Vec out, const RowEnd& end) { return end.empty ? zero() : fma(out, end.inverse, zero()); }

template <int kVectors, bool kPartial>
HEADLIGHT_INLINE void load_value(const float* value, int last_lanes, Vec (&to)[kVectors]) {
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    to[v] = kPartial && v == kVectors - 1 ? load_partial(value + v * kLanes, last_lanes) : load(value + v * kLanes);
  }
}

// Keys that all of the first rows of a tile see, [begin, end), and those that any does.
struct TileKeys {
  std::int64_t any_begin;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t any_end;
};
template <int kRows>
HEADLIGHT_INLINE TileKeys keys_of_rows(const ValueTile& tile) {
  TileKeys keys{tile.begin[0], tile.begin[0], tile.end[0], tile.end[0]};
  if (tile.same_keys) return keys;
  for (int r = 1; r < kRows; ++r) {
    keys.begin = larger(keys.begin, tile.begin[r]);
    keys.end = smaller(keys.end, tile.end[r]);
    keys.any_begin = smaller(keys.any_begin, tile.begin[r]);
    keys.any_end = larger(keys.any_end, tile.end[r]);
  }
  if (keys.begin >= keys.end) keys.begin = keys.end = keys.any_end;
  return keys;
}

// The sums to where the tile's rows go on, or end.
template <int kRows, int kVectors>
HEADLIGHT_INLINE void store_values(const ValueTile& tile, Vec (&sums)[kRows][kVectors]) {
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    float* out = tile.out + r * tile.out_stride;
    if (!tile.first) {
      const Vec keep = broadcast(tile.keep[r]);
      const Vec share = broadcast(tile.share[r]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(sums[r][v], share, mul(load(out + v * kLanes), keep));
    }
    if (tile.final_out == nullptr) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) store(sums[r][v], out + v * kLanes);
      continue;
    }
    out = tile.final_out + r * tile.final_out_stride;
    const RowEnd end = row_end(tile.final_sum[r]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store_lanes(ended(sums[r][v], end), out + v * kLanes, v == kVectors - 1 ? tile.last_lanes : kLanes);
    }
  }
}

template <int kRows, int kVectors, bool kPartial>
void ValueTile::run(const ValueTile& tile) noexcept {
  Vec sums[kRows][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = zero();
  }
  const TileKeys keys = keys_of_rows<kRows>(tile);
  const std::int64_t stride = tile.value_stride;
  const std::int64_t weights_stride = tile.weights_stride;
  const int last_lanes = tile.last_lanes;

  const auto ragged = [&](std::int64_t from, std::int64_t to) __attribute__((always_inline)) {
    for (std::int64_t j = from; j < to; ++j) {
      Vec values[kVectors];
      load_value<kVectors, kPartial>(tile.value + j * stride, last_lanes, values);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const Mask sees = mask_first(j >= tile.begin[r] && j < tile.end[r] ? kLanes : 0);
        const Vec weight = broadcast(tile.weights[r * weights_stride + j]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[r][v] = select(sees, fma(weight, values[v], sums[r][v]), sums[r][v]);
      }
    }
  };

  ragged(keys.any_begin, keys.begin);
  constexpr int kPointers = divide_up(kRows, 3);
  const float* weights[kPointers];
#pragma GCC unroll 4
  for (int p = 0; p < kPointers; ++p) weights[p] = tile.weights + 3 * p * weights_stride;
  const float* at = tile.value + keys.begin * stride;
#pragma GCC unroll 4
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    Vec value[kVectors];
    load_value<kVectors, kPartial>(at, last_lanes, value);
    // With few rows the values come from memory as fast as it gives them; with many they are in a cache.
    if constexpr (kRows <= 2) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors * kLanes; v += kFloatsOfLine) __builtin_prefetch(at + kPrefetchRows * stride + v);
    }
    at += stride;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const Vec weight = broadcast(weights[r / 3][r % 3 * weights_stride + j]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(weight, value[v], sums[r][v]);
    }
  }
  ragged(keys.end, keys.any_end);
  store_values(tile, sums);
}

template <class Tile, bool kPartial, int kVectors, int... kRows>
TileFunction<Tile> tile_of_rows(std::int64_t rows, Counts<kRows...>) {
  static constexpr TileFunction<Tile> kTiles[] = {Tile::template run<kRows, kVectors, kPartial>...};
  return kTiles[rows - 1];
}

template <class Tile, int... kVectors>
TileFunction<Tile> tile_of(std::int64_t rows, std::int64_t vectors, Counts<kVectors...>) {
  using ForRows = TileFunction<Tile> (*)(std::int64_t, CountsTo<kValueRows>::type);
  static constexpr ForRows kTiles[] = {&tile_of_rows<Tile, false, kVectors>...};
  return kTiles[vectors - 1](rows, {});
}

// For 1 … kValueRows rows and 1 … kValueVectors whole vectors, or a partial one: it stands alone, since its tiles of
// several vectors would be a third of all code here.
template <class Tile>
TileFunction<Tile> value_tile_of(std::int64_t rows, std::int64_t vectors, bool partial) {
  return partial ? tile_of_rows<Tile, true, 1>(rows, CountsTo<kValueRows>::type{})
                 : tile_of<Tile>(rows, vectors, CountsTo<kValueVectors>::type{});
}

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
