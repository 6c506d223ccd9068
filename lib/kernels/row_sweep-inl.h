// How a kernel walks along one row: whole vectors first, four at a time, then what is left of the row.
#pragma once

#include <cstdint>

#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Independent accumulators of a reduction. An add or fma takes 4 cycles and two start in each, so 8 would saturate the
// units; but the rows are read at 2 vectors a cycle at best and 4 leave registers for the vector functions. Four also
// shorten the chains of rounding errors to 1 / (4 · kLanes) of the row.
inline constexpr int kRowAccumulators = 4;

// Where sums of any length are to keep their digits, a lane adds so many float32 terms before float64 takes over.
inline constexpr std::int64_t kTermsOfLane = 64;

// Calls whole(index, offset) for each whole vector of a row, and part(offset, count) for the count < kLanes elements
// that may be left. `index` is the accumulator to use, in [0, kRowAccumulators), and depends on `columns` and the
// offset alone; the part belongs to accumulator 0.
template <class Whole, class Part>
HEADLIGHT_INLINE void sweep_row(std::int64_t columns, Whole whole, Part part) {
  constexpr std::int64_t kStep = kRowAccumulators * kLanes;
  std::int64_t at = 0;
  for (; at + kStep <= columns; at += kStep) {
#pragma GCC unroll 4
    for (int index = 0; index < kRowAccumulators; ++index) whole(index, at + index * kLanes);
  }
  for (; at + kLanes <= columns; at += kLanes) whole(0, at);
  if (at < columns) part(at, static_cast<int>(columns - at));
}

// (a0 + a1) + (a2 + a3), then the lanes.
HEADLIGHT_INLINE float sum_of_accumulators(const Vec* sums) {
  static_assert(kRowAccumulators == 4);
  return sum_of_lanes(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

// A sum over a row: whole(sum, offset) and part(sum, offset, count) add to the accumulator that they are given.
template <class Whole, class Part>
HEADLIGHT_INLINE float sum_along_row(std::int64_t columns, Whole whole, Part part) {
  Vec sums[kRowAccumulators];
#pragma GCC unroll 4
  for (Vec& one : sums) one = zero();
  sweep_row(
      columns, [&](int index, std::int64_t at) { whole(sums[index], at); },
      [&](std::int64_t at, int count) { part(sums[0], at, count); });
  return sum_of_accumulators(sums);
}

}  // namespace headlight::HEADLIGHT_TARGET
