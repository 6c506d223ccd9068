// softmax along a row: largest element, exponentials and their sum, division. Three sweeps over a row that lies in
// cache.
#pragma once

#include "kernels/rows/rows.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// The largest number of a row, and of each lane.
struct Largest {
  float number;
  Vec lanes;
};

// max ignores NaN on some paths and not on others: the caller lets NaN speak through the exponentials.
HEADLIGHT_INLINE Largest largest_of_row(const float* x, std::int64_t columns) {
  Vec largest[kRowAccumulators];
#pragma GCC unroll 4
  for (Vec& one : largest) one = broadcast(-kInfinity);
  sweep_row(columns, [&](auto some, int index, std::int64_t at) {
    largest[index] = max(largest[index], some.ended_by(some.get(x + at), broadcast(-kInfinity)));
  });
  const Vec lanes = max(max(largest[0], largest[1]), max(largest[2], largest[3]));
  return {max_of_lanes(lanes), lanes};
}

// Σ exp(x_j − largest); with kKeeps they are left in y. The difference is rounded before log2(e) is multiplied in:
// folding both into one fma would be an operation less, but for scores around 1000 its error is that of the large
// product, not of the small difference.
template <bool kKeeps>
HEADLIGHT_INLINE float exponentials_of_row(const float* x, float* y, std::int64_t columns, const Largest& largest) {
  const Vec origin = broadcast(largest.number);
  const Vec vanishing = vanishing_from(largest.number, largest.lanes);
  return sum_along_row(columns, [&](auto some, Vec& sum, std::int64_t at) {
    const Vec number = some.get(x + at);
    // Behind a row's end there is no distance: that from 0 may be above it.
    const Vec distance = some.ended_by(sub(number, origin), zero());
    const Vec weight = softmax_weight(number, distance, vanishing);
    if constexpr (kKeeps) some.put(weight, y + at);
    sum = add(sum, some.ended_by(weight, zero()));
  });
}

// No element is above −inf: zeros, unless there is a NaN among them.
inline void softmax_of_nothing(const float* x, float* y, std::int64_t columns) {
  bool has_nan = false;
  for (std::int64_t j = 0; j < columns; ++j) has_nan = has_nan || x[j] != x[j];
  for (std::int64_t j = 0; j < columns; ++j) y[j] = has_nan ? __builtin_nanf("") : 0.0f;
}

inline void softmax(kernels::Rows<const float> all_x, kernels::Rows<float> all_y, std::int64_t rows,
                    std::int64_t columns) noexcept {
  const float* x = all_x.data;
  float* y = all_y.data;
  for (std::int64_t row = 0; row < rows; ++row, x += all_x.stride, y += all_y.stride) {
    const Largest largest = largest_of_row(x, columns);
    // One comparison is made in any case.
    if (is_far_out(largest.number) && largest.number == -kInfinity) [[unlikely]] {
      softmax_of_nothing(x, y, columns);
      continue;
    }
    const float sum = exponentials_of_row<true>(x, y, columns, largest);
    scaled_row(y, 1.0f / sum, y, columns);
  }
}

inline void softmax_backward(kernels::Rows<const float> all_y, kernels::Rows<const float> y_gradient,
                             kernels::Rows<float> x_gradient, std::int64_t rows, std::int64_t columns) noexcept {
  const float* y = all_y.data;
  const float* gradient = y_gradient.data;
  float* to = x_gradient.data;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Vec mean = broadcast(dot_of_rows(y, gradient, columns));
    sweep_row(columns, [&](auto some, int, std::int64_t at) {
      some.put(mul(some.get(y + at), sub(some.get(gradient + at), mean)), to + at);
    });
    y += all_y.stride;
    gradient += y_gradient.stride;
    to += x_gradient.stride;
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
