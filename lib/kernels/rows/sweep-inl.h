// How a kernel walks along one row: whole vectors first, four at a time, then what is left of the row.
#pragma once

#include <cstdint>

#include "kernels/numbers-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Independent accumulators of a reduction. Two pipes of latency 4 would be full with 8; but two loads a cycle at best
// feed them, and 4 leave registers for the vector functions. Four also shorten the chains of rounding errors to
// 1 / (4 · kLanes) of the row.
inline constexpr int kRowAccumulators = 4;

// Where sums of any length are to keep their digits, a lane adds so many float32 terms before float64 takes over.
inline constexpr std::int64_t kTermsOfLane = 64;

// What a walk along a row takes at a time: a whole vector, or the `count` < kLanes elements that are left.
struct WholeVector {
  static constexpr int count = kLanes;
  template <class Numbers = StoredFloat32>
  HEADLIGHT_INLINE Vec get(const typename Numbers::Storage* from) const {
    return Numbers::load(from);
  }
  template <class Numbers = StoredFloat32>
  HEADLIGHT_INLINE void put(Vec v, typename Numbers::Storage* to) const {
    Numbers::store(v, to);
  }
  // v where the row has elements, and `behind` where it has ended.
  HEADLIGHT_INLINE Vec ended_by(Vec v, Vec) const { return v; }
};
struct PartOfVector {
  int count;
  template <class Numbers = StoredFloat32>
  HEADLIGHT_INLINE Vec get(const typename Numbers::Storage* from) const {
    return Numbers::load_partial(from, count);
  }
  template <class Numbers = StoredFloat32>
  HEADLIGHT_INLINE void put(Vec v, typename Numbers::Storage* to) const {
    Numbers::store_partial(v, to, count);
  }
  HEADLIGHT_INLINE Vec ended_by(Vec v, Vec behind) const { return select(mask_first(count), v, behind); }
};

// Some columns that a walk over many rows takes along: whole vectors, or part of one.
template <int kCount, class Vector>
struct Columns : Vector {
  static constexpr int kVectors = kCount;
};

// walk(some, at) for all columns of a row, so many vectors at a time; `at` is the first of some.
template <int kTogether, class Walk>
HEADLIGHT_INLINE void walk_columns(std::int64_t columns, Walk walk) {
  std::int64_t at = 0;
  for (; at + kTogether * kLanes <= columns; at += kTogether * kLanes) walk(Columns<kTogether, WholeVector>{}, at);
  for (; at + kLanes <= columns; at += kLanes) walk(Columns<1, WholeVector>{}, at);
  if (at < columns) walk(Columns<1, PartOfVector>{{static_cast<int>(columns - at)}}, at);
}

// Calls visit(some, index, offset) for all of a row. `index` is the accumulator to use, in [0, kRowAccumulators), and
// depends on `columns` and the offset alone; the part belongs to accumulator 0.
template <class Visit>
HEADLIGHT_INLINE void sweep_row(std::int64_t columns, Visit visit) {
  constexpr std::int64_t kTogether = kRowAccumulators * kLanes;
  std::int64_t at = 0;
  for (; at + kTogether <= columns; at += kTogether) {
#pragma GCC unroll 4
    for (int index = 0; index < kRowAccumulators; ++index) visit(WholeVector{}, index, at + index * kLanes);
  }
  for (; at + kLanes <= columns; at += kLanes) visit(WholeVector{}, 0, at);
  if (at < columns) visit(PartOfVector{static_cast<int>(columns - at)}, 0, at);
}

// (a0 + a1) + (a2 + a3), then the lanes.
HEADLIGHT_INLINE float sum_of_accumulators(const Vec* sums) {
  static_assert(kRowAccumulators == 4);
  return sum_of_lanes(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

// A sum over a row: visit(some, sum, offset) adds to the accumulator that it is given.
template <class Visit>
HEADLIGHT_INLINE float sum_along_row(std::int64_t columns, Visit visit) {
  Vec sums[kRowAccumulators];
#pragma GCC unroll 4
  for (Vec& one : sums) one = zero();
  sweep_row(columns, [&](auto some, int index, std::int64_t at) { visit(some, sums[index], at); });
  return sum_of_accumulators(sums);
}

// Σ a_j b_j
HEADLIGHT_INLINE float dot_of_rows(const float* a, const float* b, std::int64_t columns) {
  return sum_along_row(
      columns, [&](auto some, Vec& sum, std::int64_t at) { sum = fma(some.get(a + at), some.get(b + at), sum); });
}

// to = from · factor
template <class Numbers = StoredFloat32>
HEADLIGHT_INLINE void scaled_row(const typename Numbers::Storage* from, float factor, float* to,
                                 std::int64_t columns) noexcept {
  const Vec by = broadcast(factor);
  sweep_row(columns, [&](auto some, int, std::int64_t at) {
    some.put(mul(some.template get<Numbers>(from + at), by), to + at);
  });
}

}  // namespace headlight::HEADLIGHT_TARGET
