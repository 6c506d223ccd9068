// The product with rows of a weight matrix, packed where it may be.
#pragma once

#include <span>

#include "headlight/gemm.h"
#include "headlight/layers/weight_matrix.h"
#include "layers/rows.h"

namespace headlight::layers {

template <class T>
View<T, 2> rows_of(const View<T, 2>& matrix, const WeightMatrix::Rows& rows) noexcept {
  return {matrix.data + rows.first * matrix.stride(0), {rows.count, matrix.extent(1)}, matrix.strides};
}

// The type that products with a weight multiply in.
inline NumberType product_type(const WeightMatrix& weight) noexcept {
  return weight.is_open() ? NumberType::float32 : weight.type();
}

// y = activation(x Wᵀ + bias) + residual; x [M, K], W those rows of weight [N, K], y [M, rows.count]. In the type of
// the weight's panels, x as W; in float32 where there are none, and then x and y are that.
inline void multiply(Engine& engine, const TypedView<2>& x, const WeightMatrix& weight, WeightMatrix::Rows rows,
                     const MutableTypedView<2>& y, GemmOptions options) {
  if (const PackedMatrix* packed = weight.packed(engine, rows)) {
    gemm(engine, GemmMatrices{x, y}, *packed, options);
    return;
  }
  options.transpose_b = Transpose::yes;
  gemm(engine, floats_of(x), rows_of(weight.plain(), rows), floats_of(y), options);
}

// Its gradients: W's gradient += y_gradientᵀ x, bias_gradient += Σ_rows y_gradient (where there is one), x_gradient
// = y_gradient W + residual where given.
inline void multiply_backward(Engine& engine, View<const float, 2> x, WeightMatrix& weight, WeightMatrix::Rows rows,
                              View<const float, 2> y_gradient, std::span<float> bias_gradient,
                              View<float, 2> x_gradient, View<const float, 2> residual) {
  gemm(engine, y_gradient, x, rows_of(weight.gradient(), rows), {.transpose_a = Transpose::yes, .beta = 1.0f});
  if (!bias_gradient.empty()) bias_backward(engine, y_gradient, bias_gradient);
  if (x_gradient) gemm(engine, y_gradient, rows_of(weight.plain(), rows), x_gradient, {.residual = residual});
}

// What multiply() takes from the engine for so many rows of x.
inline GemmShape product_shape(std::int64_t m, const WeightMatrix& weight, WeightMatrix::Rows rows) noexcept {
  return {.m = m, .n = rows.count, .k = weight.columns(), .packed = !weight.is_open(), .type = product_type(weight)};
}

inline std::size_t product_bytes(const Engine& engine, std::int64_t m, const WeightMatrix& weight,
                                 WeightMatrix::Rows rows) {
  return workspace_bytes(engine, product_shape(m, weight, rows));
}

inline void reserve_product(Engine& engine, std::int64_t m, const WeightMatrix& weight, WeightMatrix::Rows rows) {
  (void)weight.packed(engine, rows);
  reserve(engine, product_shape(m, weight, rows));
}

}  // namespace headlight::layers
