// Row-wise kernels: softmax, layer normalisation, activations, embedding lookup, pooling, dropout. One thread, no
// allocation.
//
// A matrix is a pointer to its first element and the distance between rows in elements; rows are contiguous. Every
// row's bits depend on that row alone. In each kernel the output may be the same memory as an input with the same row
// distance.
#pragma once

#include <cstdint>

#include "headlight/activation.h"

namespace headlight::kernels {

struct LayerNormArguments {
  const float* x;
  std::int64_t x_stride;
  const float* residual;  // null: none
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
  std::int64_t rows;
  std::int64_t columns;
  const float* weight;  // null: 1
  const float* bias;    // null: 0
  float epsilon;
};

// One table of an embedding lookup, and the row wanted for each output row.
struct EmbeddingTable {
  const float* rows;
  std::int64_t stride;
  const std::int64_t* ids;
};

// Rows [first_row, first_row + rows) of a tensor; see headlight/dropout.h.
struct DropoutArguments {
  const float* x;
  std::int64_t x_stride;
  const float* residual;  // null: none
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t first_row;
  std::uint32_t threshold;
  float scale;
  std::uint64_t seed;
  std::uint32_t stream;
};

// Rows [rows, columns] of each of `heads` matrices, every row ≥ 0 and summing to 1.
struct EntropyArguments {
  const float* p;
  std::int64_t head_stride;
  std::int64_t row_stride;
  std::int64_t heads;
  std::int64_t rows;
  std::int64_t columns;
  double* own;    // [heads]
  double* mixed;  // [heads · (heads − 1) / 2], pairs a < b in ascending order of a, then b; null: not wanted
};

struct RowKernels {
  // y = softmax(x) along each of `rows` rows; x, y [rows, columns].
  void (*softmax)(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride, std::int64_t rows,
                  std::int64_t columns) noexcept;
  // y = (z − mean(z)) / sqrt(var(z) + epsilon) · weight + bias, z = x + residual.
  void (*layer_norm)(const LayerNormArguments& arguments) noexcept;
  // y = activation(x); x, y [rows, columns].
  void (*activate)(Activation activation, const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
                   std::int64_t rows, std::int64_t columns) noexcept;
  // out[n, :] = Σ_t tables[t].rows[tables[t].ids[n], :] for n in [0, rows), t ascending; out [rows, columns], count
  // ≥ 1.
  void (*embed)(const EmbeddingTable* tables, int count, float* out, std::int64_t out_stride, std::int64_t rows,
                std::int64_t columns) noexcept;
  // out[:] = mean of the `rows` rows of x, added in ascending order (0 rows: zeros), then divided by max(‖out‖₂, 1e-12)
  // if l2_normalize.
  void (*mean_pool)(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t columns, float* out,
                    bool l2_normalize) noexcept;
  // y = (x · scale where kept, else 0) + residual.
  void (*dropout)(const DropoutArguments& arguments) noexcept;
  // own[a] = −Σ p_a ln p_a over all rows; mixed[a, b] the same of (p_a + p_b) / 2. Equal heads give equal bits.
  void (*entropies)(const EntropyArguments& arguments) noexcept;
};

}  // namespace headlight::kernels
