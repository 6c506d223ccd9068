// A square of kLanes × kLanes numbers, turned over in registers: what every transposition is made of.
#pragma once

#include <cstdint>

#include "kernels/numbers-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// square[i][j] = from[j · stride + i] for i < columns and j < rows, both ≤ kLanes; zeros elsewhere. Inlined always:
// what vectors that nobody uses would cost, the compiler leaves out. (One number at a time, packing took four times as
// long.)
template <class Numbers = StoredFloat32>
HEADLIGHT_INLINE void load_turned(const typename Numbers::Storage* from, std::int64_t stride, std::int64_t rows,
                                  int columns, Vec (&square)[kLanes]) {
  if (rows >= kLanes && columns == kLanes) {
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j) square[j] = Numbers::load(from + j * stride);
  } else {
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j) {
      const auto* const row = from + j * stride;
      square[j] = j >= rows ? zero() : columns == kLanes ? Numbers::load(row) : Numbers::load_partial(row, columns);
    }
  }
  transpose(square);
}

// to[d][r] = from[r][d] for d < count ≤ kMost ≤ kLanes and r < rows ≤ kLanes, and zeros in the lanes behind. What the
// columns behind kMost would cost, the compiler leaves out.
template <int kMost>
HEADLIGHT_INLINE void turn_square(const float* from, std::int64_t stride, std::int64_t rows, int count, float* to,
                                  std::int64_t to_stride) {
  Vec square[kLanes];
  load_turned(from, stride, rows, count, square);
#pragma GCC unroll 16
  for (int i = 0; i < kMost; ++i) {
    if (i < count) store(square[i], to + i * to_stride);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
