// The product with a weight matrix, packed where it may be.
#pragma once

#include "headlight/layers/layer.h"

namespace headlight::layers {

// y = activation(x weightᵀ + bias) + residual; x [M, K], weight [N, K], y [M, N].
inline void multiply(Engine& engine, View<const float, 2> x, View<const float, 2> weight, const PackedCopies& copies,
                     View<float, 2> y, GemmOptions options) {
  if (const PackedMatrix* packed = copies.get(engine, weight)) {
    gemm(engine, x, *packed, y, options);
    return;
  }
  options.transpose_b = Transpose::yes;
  gemm(engine, x, weight, y, options);
}

// Its gradients: weight_gradient += y_gradientᵀ x, bias_gradient += Σ_rows y_gradient (where there is one), x_gradient
// = y_gradient weight + residual where given.
inline void multiply_backward(Engine& engine, View<const float, 2> x, View<const float, 2> weight,
                              View<const float, 2> y_gradient, View<float, 2> weight_gradient,
                              std::span<float> bias_gradient, View<float, 2> x_gradient,
                              View<const float, 2> residual) {
  gemm(engine, y_gradient, x, weight_gradient, {.transpose_a = Transpose::yes, .beta = 1.0f});
  if (!bias_gradient.empty()) bias_backward(engine, y_gradient, bias_gradient);
  if (x_gradient) gemm(engine, y_gradient, weight, x_gradient, {.residual = residual});
}

// What multiply() takes from the engine for so many rows.
inline GemmShape product_shape(std::int64_t rows, View<const float, 2> weight, bool packed) noexcept {
  return {.m = rows, .n = weight.extent(0), .k = weight.extent(1), .packed = packed};
}

inline std::size_t product_bytes(const Engine& engine, std::int64_t rows, View<const float, 2> weight,
                                 const PackedCopies& copies) {
  return workspace_bytes(engine, product_shape(rows, weight, !copies.is_open()));
}

inline void reserve_product(Engine& engine, std::int64_t rows, View<const float, 2> weight,
                            const PackedCopies& copies) {
  (void)copies.get(engine, weight);
  reserve(engine, product_shape(rows, weight, !copies.is_open()));
}

}  // namespace headlight::layers
