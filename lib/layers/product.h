// The product with rows of a weight matrix, packed where it may be.
#pragma once

#include <span>

#include "headlight/gemm.h"
#include "headlight/layers/weight_matrix.h"
#include "layers/rows.h"
#include "ops/gemm/internal.h"
#include "ops/gemm/split.h"

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
    gemm(engine, x, *packed, y, options);
    return;
  }
  options.transpose_b = Transpose::yes;
  gemm(engine, floats_of(x), rows_of(weight.plain(), rows), floats_of(y), options);
}

// Those rows of a weight that may change from call to call: in bfloat16 they are packed in every one.
inline View<const float, 2> changing_rows(const WeightMatrix& weight, WeightMatrix::Rows rows) {
  return rows_of(weight.is_open() ? weight.plain() : weight.shown(), rows);
}

// The same product in training, with activations of that type. Of bfloat16 x and y may be so, too.
inline void multiply_in_training(Engine& engine, NumberType activations, const TypedView<2>& x,
                                 const WeightMatrix& weight, WeightMatrix::Rows rows, const MutableTypedView<2>& y,
                                 GemmOptions options) {
  if (activations == NumberType::float32) return multiply(engine, x, weight, rows, y, options);
  options.transpose_b = Transpose::yes;
  ops::gemm_bfloat16(engine, x, changing_rows(weight, rows), y, options);
}

// What goes back through such a product.
struct ProductGradients {
  TypedView<2> x;
  View<const float, 2> y_gradient;
  MutableTypedView<2> x_gradient{};  // or not given
  View<const float, 2> residual{};   // added to x_gradient, or not given
  std::span<float> bias_gradient{};  // added to, or empty
};

// W's gradient += y_gradientᵀ x, bias_gradient += Σ_rows y_gradient, x_gradient = y_gradient W + residual. Of float32
// activations x and x_gradient are that.
inline void multiply_backward(Engine& engine, NumberType activations, const ProductGradients& given,
                              WeightMatrix& weight, WeightMatrix::Rows rows) {
  const View<const float, 2> from = given.y_gradient;
  const auto product = [&](const TypedView<2>& b, const MutableTypedView<2>& c, const GemmOptions& options) {
    if (activations == NumberType::float32) return gemm(engine, from, floats_of(b), floats_of(c), options);
    ops::gemm_bfloat16(engine, from, b, c, options);
  };
  product(given.x, rows_of(weight.gradient(), rows), {.transpose_a = Transpose::yes, .beta = 1.0f});
  if (!given.bias_gradient.empty()) bias_backward(engine, from, given.bias_gradient);
  if (given.x_gradient) product(rows_of(weight.plain(), rows), given.x_gradient, {.residual = given.residual});
}

// What multiply() takes from the engine for so many rows of x.
inline GemmShape product_shape(std::int64_t m, const WeightMatrix& weight, WeightMatrix::Rows rows) noexcept {
  return {.m = m, .n = rows.count, .k = weight.columns(), .packed = !weight.is_open(), .type = product_type(weight)};
}

inline std::size_t product_bytes(const Engine& engine, std::int64_t m, const WeightMatrix& weight,
                                 WeightMatrix::Rows rows) {
  return workspace_bytes(engine, product_shape(m, weight, rows));
}

// The same for so many rows of x or fewer.
inline std::size_t product_bytes_up_to(const Engine& engine, std::int64_t m, const WeightMatrix& weight,
                                       WeightMatrix::Rows rows) noexcept {
  kernels::GemmBlock product{};
  product.rows = m;
  product.columns = rows.count;
  product.depth = weight.columns();
  product.b.type = product_type(weight);
  product.b.layout = weight.is_open() ? kernels::OperandLayout::columns : kernels::OperandLayout::panels;
  return ops::gemm_bytes_up_to(engine, product);
}

inline void reserve_product(Engine& engine, std::int64_t m, const WeightMatrix& weight, WeightMatrix::Rows rows) {
  (void)weight.packed(engine, rows);
  reserve(engine, product_shape(m, weight, rows));
}

}  // namespace headlight::layers
