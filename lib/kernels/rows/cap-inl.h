// Soft caps along rows.
#pragma once

#include "kernels/rows/activation-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline void cap_rows(float factor, float cap, kernels::Rows<const float> x, kernels::Rows<float> y, std::int64_t rows,
                     std::int64_t columns) noexcept {
  const Vec by = broadcast(factor), most = broadcast(cap);
  map_rows([&](Vec v) { return mul(most, tanh(mul(by, v))); }, y, rows, columns, x);
}

inline void cap_rows_backward(float slope, float cap, kernels::Rows<const float> y,
                              kernels::Rows<const float> y_gradient, kernels::Rows<float> x_gradient, std::int64_t rows,
                              std::int64_t columns) noexcept {
  const Vec by = broadcast(slope), least = broadcast(1.0f / cap), one = broadcast(1.0f);
  const auto derivative = [&](Vec v, Vec gradient) {
    const Vec t = mul(v, least);
    return mul(gradient, mul(by, sub(one, mul(t, t))));
  };
  map_rows(derivative, x_gradient, rows, columns, y, y_gradient);
}

}  // namespace headlight::HEADLIGHT_TARGET
