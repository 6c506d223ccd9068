// Pointwise functions along rows.
#pragma once

#include "headlight/activation.h"
#include "kernels/row_sweep-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

template <class Function>
HEADLIGHT_INLINE void map_rows(Function function, const float* x, std::int64_t x_stride, float* y,
                               std::int64_t y_stride, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row, x += x_stride, y += y_stride) {
    sweep_row(columns, [&](auto some, int, std::int64_t at) { some.put(function(some.get(x + at)), y + at); });
  }
}

inline void activate(Activation activation, const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
                     std::int64_t rows, std::int64_t columns) noexcept {
  const auto with = [&](auto function) { map_rows(function, x, x_stride, y, y_stride, rows, columns); };
  switch (activation) {
    case Activation::none:
      return with([](Vec v) { return v; });
    case Activation::relu:
      return with([](Vec v) { return relu(v); });
    case Activation::gelu:
      return with([](Vec v) { return gelu(v); });
    case Activation::gelu_tanh:
      return with([](Vec v) { return gelu_tanh(v); });
  }
}

template <class Function>
HEADLIGHT_INLINE void map_row_pairs(Function function, const float* x, std::int64_t x_stride, const float* z,
                                    std::int64_t z_stride, float* y, std::int64_t y_stride, std::int64_t rows,
                                    std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row, x += x_stride, z += z_stride, y += y_stride) {
    sweep_row(columns,
              [&](auto some, int, std::int64_t at) { some.put(function(some.get(x + at), some.get(z + at)), y + at); });
  }
}

inline void activate_backward(Activation activation, const float* x, std::int64_t x_stride, const float* y_gradient,
                              std::int64_t y_gradient_stride, float* x_gradient, std::int64_t x_gradient_stride,
                              std::int64_t rows, std::int64_t columns) noexcept {
  const auto with = [&](auto function) {
    map_row_pairs(function, x, x_stride, y_gradient, y_gradient_stride, x_gradient, x_gradient_stride, rows, columns);
  };
  switch (activation) {
    case Activation::none:
      return with([](Vec, Vec gradient) { return gradient; });
    case Activation::relu:
      return with([](Vec v, Vec gradient) { return select(less_equal(v, zero()), zero(), gradient); });
    case Activation::gelu:
      return with([](Vec v, Vec gradient) { return mul(gradient, gelu_derivative(v)); });
    case Activation::gelu_tanh:
      return with([](Vec v, Vec gradient) { return mul(gradient, gelu_tanh_derivative(v)); });
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
