// One panel of B: [depth][kGemmPanelWidth], missing columns filled with zeros.
//
// A has no packed form: the micro-kernel reads it where it lies, transposed or not. Copying rows into tiles lost 3–12
// %; copying a transposed A lost 5–15 %, with blocks of 96 rows read by 6 to 8 panels; row strides of a power of two
// lose 1 % at most.
#pragma once

#include <cstdint>

#include "kernels/gemm_kernels.h"
#include "kernels/gemm_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// b [depth, columns], columns next to each other.
inline void gemm_pack_rows(const float* b, std::int64_t stride, std::int64_t depth, int columns,
                           float* panel) noexcept {
  if (columns == kGemmPanelWidth) {
    for (std::int64_t k = 0; k < depth; ++k, b += stride, panel += kGemmPanelWidth) {
      store(load(b), panel);
      store(load(b + kLanes), panel + kLanes);
    }
    return;
  }
  const int full = columns / kLanes;  // 0 or 1
  const int rest = columns - full * kLanes;
  for (std::int64_t k = 0; k < depth; ++k, b += stride, panel += kGemmPanelWidth) {
    const Vec tail = load_partial(b + full * kLanes, rest);
    store(full == 1 ? load(b) : tail, panel);
    store(full == 1 ? tail : zero(), panel + kLanes);
  }
}

// b [columns, depth], turned over kLanes × kLanes elements at a time. (One by one it took four times as long.)
inline void gemm_pack_columns(const float* b, std::int64_t stride, std::int64_t depth, int columns,
                              float* panel) noexcept {
  for (std::int64_t k = 0; k < depth; k += kLanes) {
    const int steps = depth - k < kLanes ? static_cast<int>(depth - k) : kLanes;
    for (int first = 0; first < kGemmPanelWidth; first += kLanes) {
      const float* from = b + first * stride + k;
      float* to = panel + k * kGemmPanelWidth + first;
      Vec rows[kLanes];
      if (steps == kLanes && first + kLanes <= columns) {
#pragma GCC unroll 16
        for (int row = 0; row < kLanes; ++row) rows[row] = load(from + row * stride);
        transpose(rows);
#pragma GCC unroll 16
        for (int row = 0; row < kLanes; ++row) store(rows[row], to + row * kGemmPanelWidth);
        continue;
      }
      for (int row = 0; row < kLanes; ++row) {
        rows[row] = first + row < columns ? load_partial(from + row * stride, steps) : zero();
      }
      transpose(rows);
      for (int row = 0; row < steps; ++row) store(rows[row], to + row * kGemmPanelWidth);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
