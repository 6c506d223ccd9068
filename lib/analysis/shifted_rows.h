// Rows moved to an origin of their own, as large as a float32 may be.
#pragma once

#include <cstdint>

#include "kernels/rows/kernels.h"

namespace headlight::analysis {

struct Shifted {
  float largest;  // |y|; NaN does not count
  int scale;
};

// y = 2⁻ˢ (x − origin), s the scale, and sums[:] = Σ y; null: not wanted. What is finite stays so: a difference of two
// float32 numbers may pass what a third one holds, and so may the 64 that the kernel adds up before float64 takes over.
// Below 2¹²¹ they do not, and that is nearly always: rows are gone over twice only beyond.
inline Shifted shift_rows(const kernels::RowKernels& kernels, const kernels::ChosenRows& rows, const float* origin,
                          float* y, std::int64_t y_stride, double* sums) noexcept {
  const float largest = kernels.shift_rows(rows, origin, 1.0f, y, y_stride, sums);
  if (largest <= 0x1p121f) return {largest, 0};
  // Differences are below 2¹²⁹.
  return {kernels.shift_rows(rows, origin, 0x1p-8f, y, y_stride, sums), 8};
}

}  // namespace headlight::analysis
