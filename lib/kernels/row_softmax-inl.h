// softmax along a row: largest element, exponentials and their sum, division. Three sweeps over a row that lies in
// cache.
#pragma once

#include "kernels/row_sweep-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// max ignores NaN on some paths and not on others: the caller lets NaN speak through the exponentials.
HEADLIGHT_INLINE float largest_of_row(const float* x, std::int64_t columns) {
  Vec largest[kRowAccumulators];
#pragma GCC unroll 4
  for (Vec& one : largest) one = broadcast(-kInfinity);
  sweep_row(
      columns, [&](int index, std::int64_t at) { largest[index] = max(largest[index], load(x + at)); },
      [&](std::int64_t at, int count) {
        largest[0] = max(largest[0], select(mask_first(count), load_partial(x + at, count), broadcast(-kInfinity)));
      });
  return max_of_lanes(max(max(largest[0], largest[1]), max(largest[2], largest[3])));
}

// Σ exp(x_j − largest); with kKeeps they are left in y. The difference is rounded before log2(e) is multiplied in:
// folding both into one fma would be an operation less, but for scores around 1000 its error is that of the large
// product, not of the small difference.
template <bool kKeeps>
HEADLIGHT_INLINE float exponentials_of_row(const float* x, float* y, std::int64_t columns, float largest) {
  const Vec origin = broadcast(largest);
  return sum_along_row(
      columns,
      [&](Vec& sum, std::int64_t at) {
        const Vec weight = exp2_nonpositive(mul(sub(load(x + at), origin), broadcast(kLog2E)));
        if constexpr (kKeeps) store(weight, y + at);
        sum = add(sum, weight);
      },
      [&](Vec& sum, std::int64_t at, int count) {
        const Vec weight = exp2_nonpositive(mul(sub(load_partial(x + at, count), origin), broadcast(kLog2E)));
        if constexpr (kKeeps) store_partial(weight, y + at, count);
        sum = add(sum, select(mask_first(count), weight, zero()));
      });
}

HEADLIGHT_INLINE void scale_row(float* y, std::int64_t columns, float factor) {
  const Vec by = broadcast(factor);
  sweep_row(
      columns, [&](int, std::int64_t at) { store(mul(load(y + at), by), y + at); },
      [&](std::int64_t at, int count) { store_partial(mul(load_partial(y + at, count), by), y + at, count); });
}

// No element is above −inf: zeros, unless there is a NaN among them.
inline void softmax_of_nothing(const float* x, float* y, std::int64_t columns) {
  bool has_nan = false;
  for (std::int64_t j = 0; j < columns; ++j) has_nan = has_nan || x[j] != x[j];
  for (std::int64_t j = 0; j < columns; ++j) y[j] = has_nan ? __builtin_nanf("") : 0.0f;
}

inline void softmax(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride, std::int64_t rows,
                    std::int64_t columns) noexcept {
  for (std::int64_t row = 0; row < rows; ++row, x += x_stride, y += y_stride) {
    const float largest = largest_of_row(x, columns);
    if (largest == -kInfinity) {
      softmax_of_nothing(x, y, columns);
      continue;
    }
    const float sum = exponentials_of_row<true>(x, y, columns, largest);
    scale_row(y, columns, 1.0f / sum);
  }
}

// Σ a_j b_j
HEADLIGHT_INLINE float dot_of_rows(const float* a, const float* b, std::int64_t columns) {
  return sum_along_row(
      columns, [&](Vec& sum, std::int64_t at) { sum = fma(load(a + at), load(b + at), sum); },
      [&](Vec& sum, std::int64_t at, int count) {
        sum = fma(load_partial(a + at, count), load_partial(b + at, count), sum);
      });
}

inline void softmax_backward(const float* y, std::int64_t y_stride, const float* y_gradient,
                             std::int64_t y_gradient_stride, float* x_gradient, std::int64_t x_gradient_stride,
                             std::int64_t rows, std::int64_t columns) noexcept {
  for (std::int64_t row = 0; row < rows; ++row) {
    const Vec mean = broadcast(dot_of_rows(y, y_gradient, columns));
    sweep_row(
        columns,
        [&](int, std::int64_t at) { store(mul(load(y + at), sub(load(y_gradient + at), mean)), x_gradient + at); },
        [&](std::int64_t at, int count) {
          const Vec centred = sub(load_partial(y_gradient + at, count), mean);
          store_partial(mul(load_partial(y + at, count), centred), x_gradient + at, count);
        });
    y += y_stride;
    y_gradient += y_gradient_stride;
    x_gradient += x_gradient_stride;
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
