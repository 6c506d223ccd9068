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
    sweep_row(
        columns, [&](int, std::int64_t at) { store(function(load(x + at)), y + at); },
        [&](std::int64_t at, int count) { store_partial(function(load_partial(x + at, count)), y + at, count); });
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

}  // namespace headlight::HEADLIGHT_TARGET
