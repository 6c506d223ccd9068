// Pointwise functions along rows.
#pragma once

#include "headlight/activation_kind.h"
#include "kernels/rows/rows.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/math-inl.h"
#include "simd/several-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// y = function(x…), element by element.
template <class Function, class... X>
HEADLIGHT_INLINE void map_rows(Function function, kernels::Rows<float> y, std::int64_t rows, std::int64_t columns,
                               X... x) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto map_row = [&](float* to, auto... from) {
      walk_columns<1>(columns,
                      [&](auto some, std::int64_t at) { some.put(function(some.get(from + at)...), to + at); });
    };
    map_row(y.row(row), x.row(row)...);
  }
}

// y = function(x), times `by` where that is given, so many vectors side by side.
inline constexpr int kActivatedTogether = kLanes > 1 ? 4 : 1;
template <class Function>
HEADLIGHT_INLINE void activate_rows(Function function, kernels::Rows<const float> x, kernels::Rows<const float> by,
                                    kernels::Rows<float> y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const from = x.row(row);
    const float* const factors = by.data == nullptr ? nullptr : by.row(row);
    float* const to = y.row(row);
    const auto activate_some = [&](auto some, std::int64_t at) __attribute__((always_inline)) {
      constexpr int kVectors = decltype(some)::kVectors;
      const auto load_some = [&](const float* first) __attribute__((always_inline)) {
        Several<kVectors> loaded;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) loaded.vectors[v] = some.get(first + v * kLanes);
        return loaded;
      };
      Several<kVectors> made = function(load_some(from + at));
      if (factors != nullptr) made = mul(made, load_some(factors + at));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) some.put(made.vectors[v], to + at + v * kLanes);
    };
    walk_columns<kActivatedTogether>(columns, activate_some);
  }
}

inline void activate(Activation activation, kernels::Rows<const float> x, kernels::Rows<const float> by,
                     kernels::Rows<float> y, std::int64_t rows, std::int64_t columns) noexcept {
  const auto with = [&](auto function) { activate_rows(function, x, by, y, rows, columns); };
  switch (activation) {
    case Activation::none:
      return with([](auto v) { return v; });
    case Activation::relu:
      return with([](auto v) { return relu(v); });
    case Activation::gelu:
      return with([](auto v) { return gelu(v); });
    case Activation::gelu_tanh:
      return with([](auto v) { return gelu_tanh(v); });
    case Activation::silu:
      return with([](auto v) { return silu(v); });
  }
}

inline void multiply_rows(kernels::Rows<const float> a, kernels::Rows<const float> b, kernels::Rows<float> y,
                          std::int64_t rows, std::int64_t columns) noexcept {
  map_rows([](Vec one, Vec other) { return mul(one, other); }, y, rows, columns, a, b);
}

inline void activate_backward(Activation activation, kernels::Rows<const float> x,
                              kernels::Rows<const float> y_gradient, kernels::Rows<float> x_gradient, std::int64_t rows,
                              std::int64_t columns) noexcept {
  const auto with = [&](auto function) { map_rows(function, x_gradient, rows, columns, x, y_gradient); };
  switch (activation) {
    case Activation::none:
      return with([](Vec, Vec gradient) { return gradient; });
    case Activation::relu:
      return with([](Vec v, Vec gradient) { return select(less_equal(v, zero()), zero(), gradient); });
    case Activation::gelu:
      return with([](Vec v, Vec gradient) { return mul(gradient, gelu_derivative(v)); });
    case Activation::gelu_tanh:
      return with([](Vec v, Vec gradient) { return mul(gradient, gelu_tanh_derivative(v)); });
    case Activation::silu:
      return with([](Vec v, Vec gradient) { return mul(gradient, silu_derivative(v)); });
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
