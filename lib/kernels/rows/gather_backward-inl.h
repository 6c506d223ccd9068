// Gradients of what gathers rows: sums of columns (the gradient of a bias), scattered rows (of an embedding), shares of
// a mean (of pooling).
#pragma once

#include "kernels/rows/gather-inl.h"
#include "kernels/rows/gradient_kernels.h"

namespace headlight::HEADLIGHT_TARGET {

template <class Some>
HEADLIGHT_INLINE void sum_columns(Some some, const float* x, std::int64_t x_stride, std::int64_t rows, float* sums) {
  Vec totals[Some::kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < Some::kVectors; ++v) totals[v] = some.get(sums + v * kLanes);
  for (std::int64_t row = 0; row < rows; ++row, x += x_stride) {
#pragma GCC unroll 8
    for (int v = 0; v < Some::kVectors; ++v) totals[v] = add(totals[v], some.get(x + v * kLanes));
  }
#pragma GCC unroll 8
  for (int v = 0; v < Some::kVectors; ++v) some.put(totals[v], sums + v * kLanes);
}

inline void sum_rows(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t columns,
                     float* sums) noexcept {
  walk_columns<8>(columns, [&](auto some, std::int64_t at) { sum_columns(some, x + at, x_stride, rows, sums + at); });
}

inline void scatter_add(float* table, std::int64_t table_stride, const std::int64_t* ids, const float* gradient,
                        std::int64_t gradient_stride, std::int64_t rows, std::int64_t columns) noexcept {
  for (std::int64_t n = 0; n < rows; ++n, gradient += gradient_stride) {
    float* row = table + ids[n] * table_stride;
    sweep_row(columns, [&](auto some, int, std::int64_t at) {
      some.put(add(some.get(row + at), some.get(gradient + at)), row + at);
    });
  }
}

// row ← (gradient − row · along) · by
HEADLIGHT_INLINE void take_out_direction(const float* gradient, float along_it, float factor, float* row,
                                         std::int64_t columns) {
  const Vec along = broadcast(along_it);
  const Vec by = broadcast(factor);
  sweep_row(columns, [&](auto some, int, std::int64_t at) {
    some.put(mul(fnma(some.get(row + at), along, some.get(gradient + at)), by), row + at);
  });
}

// The gradient of one row's share where the mean is divided by its norm. The mean m lies in `row` until the gradient
// takes its place: (g − m (m · g) / ‖m‖²) / (‖m‖ · rows).
HEADLIGHT_INLINE void normalized_share(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t columns,
                                       const float* out_gradient, float* row) {
  constexpr float kLeast = 1e-12f;
  const float share = 1.0f / static_cast<float>(rows);
  mean_pool(x, x_stride, rows, columns, row, false);
  const float squares = dot_of_rows(row, row, columns);
  const float norm = max_of_lanes(sqrt(broadcast(squares)));
  if (norm < kLeast) return scaled_row(out_gradient, share / kLeast, row, columns);
  take_out_direction(out_gradient, dot_of_rows(row, out_gradient, columns) / squares, share / norm, row, columns);
}

inline void mean_pool_backward(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t columns,
                               const float* out_gradient, float* x_gradient, std::int64_t x_gradient_stride,
                               bool l2_normalize) noexcept {
  if (l2_normalize) {
    normalized_share(x, x_stride, rows, columns, out_gradient, x_gradient);
  } else {
    scaled_row(out_gradient, 1.0f / static_cast<float>(rows), x_gradient, columns);
  }
  for (std::int64_t row = 1; row < rows; ++row) {
    scaled_row(x_gradient, 1.0f, x_gradient + row * x_gradient_stride, columns);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
