// Row-wise kernels: softmax, layer normalisation, activations, embedding lookup, pooling, dropout, and what is measured
// on heads. One thread, no allocation.
//
// Every row's bits depend on that row alone. In each kernel but shift_rows the output may be the same memory as an
// input with the same row distance.
#pragma once

#include <cstdint>

#include "headlight/activation_kind.h"
#include "kernels/rows/head_kernels.h"
#include "kernels/rows/rows.h"

namespace headlight::kernels {

struct LayerNormArguments {
  Rows<const float> x;
  Rows<const float> residual;  // null: none
  Rows<float> y;
  std::int64_t rows;
  std::int64_t columns;
  const float* weight;  // null: 1
  const float* bias;    // null: 0
  float epsilon;
};

struct RmsNormArguments {
  Rows<const float> x;
  Rows<const float> added;  // null: none
  Rows<float> y;
  std::int64_t rows;
  std::int64_t columns;
  const float* weight;  // null: 1
  bool one_plus_weight;
  float epsilon;
};

// One table of an embedding lookup, of which there are at most so many, and the row wanted for each output row.
inline constexpr int kMaxEmbeddingTables = 8;
struct EmbeddingTable {
  const float* rows;
  std::int64_t stride;
  const std::int64_t* ids;
};

// Rows [first_row, first_row + rows) of a tensor; see headlight/dropout.h.
struct DropoutArguments {
  Rows<const float> x;
  Rows<const float> residual;  // null: none
  Rows<float> y;
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

// Rows [rows, columns] of one head, row r being that of token tokens[r] (null: first_token + r), tokens below 2²⁴.
struct WeightRowsArguments {
  const float* p;
  std::int64_t row_stride;
  std::int64_t rows;
  std::int64_t columns;
  const std::int64_t* tokens;
  std::int64_t first_token;
};

// What such a row says of itself; of one that holds NaN, nothing but that its sum is NaN.
struct WeightRow {
  double sum;       // Σ_j p_j
  double distance;  // Σ_j p_j |j − token|
  float least;      // of the p_j and 0
  float largest;
  std::int64_t peak;  // the j whose p_j alone lies within 2⁻²⁰ of the largest, which is above 0; −1: there is none
};

// Rows numbers[first], numbers[first + stride] … of a matrix; numbers null: first, first + stride …
struct ChosenRows {
  const float* x;
  std::int64_t x_stride;
  const std::int64_t* numbers;
  std::int64_t first;
  std::int64_t stride;
  std::int64_t count;
  std::int64_t columns;
};

struct RowKernels {
  // y = softmax(x) along each of `rows` rows; x, y [rows, columns].
  void (*softmax)(Rows<const float> x, Rows<float> y, std::int64_t rows, std::int64_t columns) noexcept;
  // y = (z − mean(z)) / sqrt(var(z) + epsilon) · weight + bias, z = x + residual.
  void (*layer_norm)(const LayerNormArguments& arguments) noexcept;
  // y = activation(x), times `by` (null: none) element by element; all [rows, columns].
  void (*activate)(Activation activation, Rows<const float> x, Rows<const float> by, Rows<float> y, std::int64_t rows,
                   std::int64_t columns) noexcept;
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
  // found [rows]. Sums of 64 float32 terms a lane, added up in float64.
  void (*weight_rows)(const WeightRowsArguments& arguments, WeightRow* found) noexcept;
  // mean[:] = x_0 + Σ_i (x_i − x_0) / count for count ≥ 1 rows: near their mean, and theirs exactly where all are
  // equal. Finite wherever they are.
  void (*near_mean)(const ChosenRows& rows, float* mean) noexcept;
  // y_i = factor · x_i − factor · origin, the factor a power of two; the largest |y|, for which NaN does not count.
  // sums[:] = Σ_i y_i, of 64 float32 terms at a time in float64; null: not wanted. y is memory of its own: rows may
  // come in any order and more than once.
  float (*shift_rows)(const ChosenRows& rows, const float* origin, float factor, float* y, std::int64_t y_stride,
                      double* sums) noexcept;
  // A symmetric matrix k [n, n], n ≥ 3, U-centred without its diagonal (see minibatch_cka.cc); what lies above that
  // is left at its beginning, row after row, n (n − 1) / 2 numbers. shifts: room for [n]. Gives the trace.
  double (*centre_kernel)(float* k, std::int64_t n, float* shifts) noexcept;
  // y = x / sqrt(mean(x²) + epsilon) · w + added.
  void (*rms_norm)(const RmsNormArguments& arguments) noexcept;
  void (*head_rows)(const HeadRowsArguments& arguments) noexcept;
  // y = a · b, element by element; all [rows, columns].
  void (*multiply)(Rows<const float> a, Rows<const float> b, Rows<float> y, std::int64_t rows,
                   std::int64_t columns) noexcept;
  // y = cap · tanh(factor · x); x, y [rows, columns].
  void (*cap)(float factor, float cap, Rows<const float> x, Rows<float> y, std::int64_t rows,
              std::int64_t columns) noexcept;
};

}  // namespace headlight::kernels
