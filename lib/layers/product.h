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
