// The gradients of the row-wise kernels, and the loss. One thread, no allocation.
#pragma once

#include <cstdint>

#include "headlight/activation_kind.h"
#include "kernels/rows/rows.h"

namespace headlight::kernels {

struct LayerNormBackwardArguments {
  Rows<const float> x;
  Rows<const float> y_gradient;
  Rows<const float> residual;  // null: none
  Rows<float> x_gradient;      // null: not wanted
  std::int64_t rows;
  std::int64_t columns;
  const float* weight;  // w itself; null: 1
  float epsilon;
  bool root_mean_square;  // the norm is rms_norm()
  // [columns] each: added to, row after row; null: not wanted.
  float* weight_gradient;
  float* bias_gradient;
};

struct CrossEntropyArguments {
  Rows<const float> logits;
  Rows<float> gradient;  // null: not wanted; may be logits
  const std::int64_t* labels;
  std::int64_t ignore_label;
  std::int64_t rows;
  std::int64_t columns;
  float scale;    // of the gradient
  float* losses;  // [rows]; 0 for an ignored one
};

struct RowGradientKernels {
  // x_gradient = y_gradient · activation′(x); all [rows, columns]. x_gradient may be either input.
  void (*activate)(Activation activation, Rows<const float> x, Rows<const float> y_gradient, Rows<float> x_gradient,
                   std::int64_t rows, std::int64_t columns) noexcept;
  // x_gradient = y · (y_gradient − Σ y · y_gradient) along each row. x_gradient may be either input.
  void (*softmax)(Rows<const float> y, Rows<const float> y_gradient, Rows<float> x_gradient, std::int64_t rows,
                  std::int64_t columns) noexcept;
  // x_gradient may be x, y_gradient or residual.
  void (*layer_norm)(const LayerNormBackwardArguments& arguments) noexcept;
  // sums[j] += Σ_i x[i, j], i ascending.
  void (*sum_rows)(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t columns,
                   float* sums) noexcept;
  // table[ids[n], :] += gradient[n, :], n ascending.
  void (*scatter_add)(float* table, std::int64_t table_stride, const std::int64_t* ids, const float* gradient,
                      std::int64_t gradient_stride, std::int64_t rows, std::int64_t columns) noexcept;
  // Each of the `rows` ≥ 1 rows of x_gradient; x is read only with l2_normalize and is not x_gradient.
  void (*mean_pool)(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t columns,
                    const float* out_gradient, float* x_gradient, std::int64_t x_gradient_stride,
                    bool l2_normalize) noexcept;
  void (*cross_entropy)(const CrossEntropyArguments& arguments) noexcept;
  // x_gradient = slope · (1 − (y / cap)²) · y_gradient, y as RowKernels::cap gave it and slope = factor · cap there.
  // x_gradient may be either input.
  void (*cap)(float slope, float cap, Rows<const float> y, Rows<const float> y_gradient, Rows<float> x_gradient,
              std::int64_t rows, std::int64_t columns) noexcept;
};

}  // namespace headlight::kernels
