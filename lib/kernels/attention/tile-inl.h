// The tile shapes of attention, by the number of vector registers.
#pragma once

#include <cstdint>

#include "kernels/tile-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// A block of rows goes through scores, weights and values together; its scores (24 KiB at 12 rows of 512 keys) stay in
// the first cache level. Both products take it in groups of rows × vectors: 6 × 4 sums, four operands and a broadcast
// are 29 of 32 registers, 6 × 2 are 15 of 16, and two pipes of latency 4 want at least 8 sums in flight. 6 × 4 sums
// load ten operands for 24 products where 12 × 2 load fourteen: the loads are what a core spends its power on. Two
// groups to a block: the second finds keys and values in the first cache level.
inline constexpr int kBlockRows = 12;
inline constexpr int kTileVectors = kValues.attention_tile_vectors;
// Plain C++ has tiles of 2 × 2: larger ones would be code that only machines without vectors run.
inline constexpr int kScoreRows = kLanes == 1 ? 2 : 6;
inline constexpr int kValueRows = kLanes == 1 ? 2 : 6;
inline constexpr int kScoreVectors = kTileVectors;
inline constexpr int kValueVectors = kTileVectors;
// Of so few vectors of values a whole block has its sums in registers at once: half as many passes over the values, in
// a loop twice as long. Of a single vector that gains too little for its code.
inline constexpr int kNarrowVectors = larger(kValueRows * kValueVectors / kBlockRows, 1);
inline constexpr int kKeyPanel = kScoreVectors * kLanes;
inline constexpr int kValuePanel = kValueVectors * kLanes;

// Rows are few up to so many blocks: packing the keys would cost as much as turning them once for each block. Of
// numbers that are widened on the way not every instruction set has tiles: others widen a panel at a time, as it is
// packed.
inline constexpr int kSweepTiles = 2;
inline constexpr int kNarrowSweepRows = kValues.attention_widens_in_tiles ? kSweepTiles * kBlockRows : 0;

// Rows of a block rounded up to whole vectors, for numbers that there is one of for each row.
inline constexpr int kRowSlots = round_up(kBlockRows, kLanes);

// `rows` in as few groups as there must be of at most kMost rows each, all of about the same size (8 are 4 + 4, not 6 +
// 2, whose last tile would wait for its few sums): the rows of a group. A division by what is not constant would show
// in a call of one head of few rows.
template <int kMost>
HEADLIGHT_INLINE std::int64_t rows_of_group(std::int64_t rows) {
  if (rows <= kMost) return rows;
  if (rows <= 2 * kMost) return divide_up(rows, 2);
  return divide_up(rows, divide_up(rows, kMost));
}

// Keys and values are read from memory that far ahead. (A prefetch past the end of memory does nothing.)
inline constexpr std::int64_t kPrefetchRows = 16;

HEADLIGHT_INLINE Vec load_lanes(const float* from, int count) {
  return count == kLanes ? load(from) : load_partial(from, count);
}
HEADLIGHT_INLINE void store_lanes(Vec v, float* to, int count) {
  if (count == kLanes) {
    store(v, to);
  } else {
    store_partial(v, to, count);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
