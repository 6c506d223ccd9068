// Row-wise operations and their gradients: softmax, normalisations, pooling, embedding lookup. A backward pass
// stands below the forward pass that it inverts: given the gradient of some sum by the outputs, it gives that by the
// inputs.
//
// Tensors with rows, and tables, are of a type of their own each: float32, bfloat16 or float16; so they are in
// activation.h, dropout.h and bias_backward(). Numbers of 16 bits are storage: a few rows at a time are widened, which
// is exact, all arithmetic is float32's, and what is written is rounded once, to the nearest number of its type, ties
// to even. So results have the bits of the same call over the widened tensors, rounded. Vectors, sums over rows,
// gradients of tables, and pooling are float32's alone. An output may be an input, where that is said, if both are the
// same view of the same type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/storage_format.h"
#include "headlight/typed_view.h"

namespace headlight {

// y_ij = exp(x_ij − m_i) / Σ_j exp(x_ij − m_i), m_i = max_j x_ij; x, y [N, L], y may be x itself. A row of −inf gives
// zeros; NaN and +inf make their row NaN.
HEADLIGHT_API void softmax(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y);

// x_gradient = y ∘ (y_gradient − Σ_j y_ij · y_gradient_ij), y = softmax(x); all [N, L], x_gradient may be either input.
HEADLIGHT_API void softmax_backward(Engine& engine, const TypedView<2>& y, const TypedView<2>& y_gradient,
                                    const MutableTypedView<2>& x_gradient);

// y = (z − mean(z)) / sqrt(var(z) + epsilon) · weight + bias over the last axis, z = x + residual where given; x, y [N,
// E], weight, bias [E] (empty: 1 and 0), var is the biased one. y may be x or residual. With an epsilon of 0, a row
// whose numbers are all the same divides 0 by 0: y is NaN, as PyTorch's is. (Ba et al. 2016)
struct LayerNormOptions {
  std::span<const float> weight{};
  std::span<const float> bias{};
  float epsilon = 1e-5f;  // keeps the root above 0
  TypedView<2> residual{};
};
HEADLIGHT_API void layer_norm(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y,
                              const LayerNormOptions& options = {});

// Where the gradients of layer_norm() go; each is left out where it is not given.
struct LayerNormGradients {
  // [N, E], written; may be x or y_gradient.
  MutableTypedView<2> x{};
  // [N, E], added to the gradient of x; may be that view itself.
  TypedView<2> residual{};
  // [E] each, added to. Rows are summed as in bias_backward().
  std::span<float> weight{};
  std::span<float> bias{};
};
// With n = (x − mean(x)) / s, s = sqrt(var(x) + epsilon) and g = y_gradient ∘ weight:
//   x: (g − mean(g) − n ∘ mean(g ∘ n)) / s + residual,  weight: Σ_rows y_gradient ∘ n,  bias: Σ_rows y_gradient.
// Mean and variance are worked out again from x. `options` are those of the forward pass, without a residual: where
// there was one, x is the sum, and the gradient is that of both.
HEADLIGHT_API void layer_norm_backward(Engine& engine, const TypedView<2>& x, const TypedView<2>& y_gradient,
                                       const LayerNormGradients& gradients, const LayerNormOptions& options = {});

// y = x / sqrt(mean(x²) + epsilon) · w + added over the last axis; x, y, added [N, E], w = weight [E], or 1 + weight
// (Gemma); without a weight w is 1, without `added` nothing is added. y may be x or added. With an epsilon of 0, a row
// of zeros divides 0 by 0: y is NaN, as PyTorch's is. (Zhang & Sennrich 2019)
struct RmsNormOptions {
  std::span<const float> weight{};
  bool one_plus_weight = false;  // whether w is 1 + weight
  float epsilon = 1e-6f;         // keeps the root above 0
  TypedView<2> added{};          // such as the residual that a normalised branch joins
};
HEADLIGHT_API void rms_norm(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y,
                            const RmsNormOptions& options = {});

// Where the gradients of rms_norm() go; each is left out where it is not given.
struct RmsNormGradients {
  // [N, E], written; may be x or y_gradient.
  MutableTypedView<2> x{};
  // [N, E], added to the gradient of x; may be that view itself.
  TypedView<2> residual{};
  // [E], added to. Rows are summed as in bias_backward().
  std::span<float> weight{};
};
// With s = sqrt(mean(x²) + epsilon), n = x / s and g = y_gradient ∘ w:
//   x: (g − n ∘ mean(g ∘ n)) / s + residual,  weight: Σ_rows y_gradient ∘ n.
// The root is worked out again from x. `options` are those of the forward pass; the gradient of `added` is y_gradient.
HEADLIGHT_API void rms_norm_backward(Engine& engine, const TypedView<2>& x, const TypedView<2>& y_gradient,
                                     const RmsNormGradients& gradients, const RmsNormOptions& options = {});

// out[n, :] = Σ_t tables[t][ids[t][n], :] (word, position and token-type embeddings in one pass); out [N, E], table t
// [V_t, E], ids t [N]. Throws std::invalid_argument for an id outside [0, V_t), naming table, position and id.
struct Embedding {
  TypedView<2> table{};
  std::span<const std::int64_t> ids{};
  // Where given, the numbers of the table, as a file has them in blocks: then `table` has a shape and no memory.
  StoredNumbers blocks{};
};
HEADLIGHT_API void embed(Engine& engine, std::span<const Embedding> embeddings, const MutableTypedView<2>& out);

// table_gradients[t][ids[t][n], :] += out_gradient[n, :] for ascending n, whatever the number of threads; out_gradient
// [N, E], table t [V_t, E], ids t [N], no table overlapping another.
struct EmbeddingGradient {
  View<float, 2> table{};
  std::span<const std::int64_t> ids{};
};
HEADLIGHT_API void embed_backward(Engine& engine, const TypedView<2>& out_gradient,
                                  std::span<const EmbeddingGradient> embeddings);

// out[s, :] = mean of rows offsets[s] … offsets[s+1] − 1 of x; x [N, E], out [n, E], offsets [n + 1] ascending from 0
// to N. An empty sequence gives zeros. With l2_normalize each out row is divided by max(‖row‖₂, 1e-12).
HEADLIGHT_API void mean_pool(Engine& engine, View<const float, 2> x, std::span<const std::int64_t> offsets,
                             View<float, 2> out, bool l2_normalize);

// The gradient by x [N, E] of a sum whose gradient by out is out_gradient [n, E]: each row of sequence s gets its share
// 1/length of the mean's gradient, which is out_gradient_s, with l2_normalize (g − o (o · g)) / ‖mean‖ for o = mean /
// ‖mean‖ (or g / 1e-12 where the mean is shorter than that). x is read only with l2_normalize.
HEADLIGHT_API void mean_pool_backward(Engine& engine, View<const float, 2> x, std::span<const std::int64_t> offsets,
                                      View<const float, 2> out_gradient, View<float, 2> x_gradient, bool l2_normalize);

// What any of these, and of gate.h, rotary.h and head_rows.h, whose tensors are not all float32 takes from the engine
// for rows of so many numbers, beside what sums over rows and a gradient's 1 + weight take: at most four buffers a
// thread, of 9 KiB or one row each, which stay in the first-level cache. (head_rows_backward() takes it in any type.)
// And taking it now, so that not even the first call allocates; reserve_rows() throws OutOfMemory.
[[nodiscard]] HEADLIGHT_API std::size_t rows_workspace_bytes(const Engine& engine, std::int64_t columns) noexcept;
HEADLIGHT_API void reserve_rows(Engine& engine, std::int64_t columns);

}  // namespace headlight
