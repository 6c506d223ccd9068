// Row-wise operations and their gradients: softmax, layer normalisation, pooling, embedding lookup. A backward pass
// stands below the forward pass that it inverts: given the gradient of some sum by the outputs, it gives that by the
// inputs.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/tensor.h"

namespace headlight {

// y_ij = exp(x_ij − m_i) / Σ_j exp(x_ij − m_i), m_i = max_j x_ij; x, y [N, L], y may be x itself. A row of −inf gives
// zeros; NaN and +inf make their row NaN.
HEADLIGHT_API void softmax(Engine& engine, View<const float, 2> x, View<float, 2> y);

// x_gradient = y ∘ (y_gradient − Σ_j y_ij · y_gradient_ij), y = softmax(x); all [N, L], x_gradient may be either input.
HEADLIGHT_API void softmax_backward(Engine& engine, View<const float, 2> y, View<const float, 2> y_gradient,
                                    View<float, 2> x_gradient);

// y = (z − mean(z)) / sqrt(var(z) + epsilon) · weight + bias over the last axis, z = x + residual where given; x, y [N,
// E], weight, bias [E] (empty: 1 and 0), var is the biased one. y may be x or residual. (Ba et al. 2016)
struct LayerNormOptions {
  std::span<const float> weight{};
  std::span<const float> bias{};
  float epsilon = 1e-5f;  // keeps the root above 0
  View<const float, 2> residual{};
};
HEADLIGHT_API void layer_norm(Engine& engine, View<const float, 2> x, View<float, 2> y,
                              const LayerNormOptions& options = {});

// Where the gradients of layer_norm() go; each is left out where it is not given.
struct LayerNormGradients {
  // [N, E], written; may be x or y_gradient.
  View<float, 2> x{};
  // [N, E], added to the gradient of x; may be that view itself.
  View<const float, 2> residual{};
  // [E] each, added to. Rows are summed as in bias_backward().
  std::span<float> weight{};
  std::span<float> bias{};
};
// With n = (x − mean(x)) / s, s = sqrt(var(x) + epsilon) and g = y_gradient ∘ weight:
//   x: (g − mean(g) − n ∘ mean(g ∘ n)) / s + residual,  weight: Σ_rows y_gradient ∘ n,  bias: Σ_rows y_gradient.
// Mean and variance are worked out again from x. `options` are those of the forward pass, without a residual: where
// there was one, x is the sum, and the gradient is that of both.
HEADLIGHT_API void layer_norm_backward(Engine& engine, View<const float, 2> x, View<const float, 2> y_gradient,
                                       const LayerNormGradients& gradients, const LayerNormOptions& options = {});

// out[n, :] = Σ_t tables[t][ids[t][n], :] (word, position and token-type embeddings in one pass); out [N, E], table t
// [V_t, E], ids t [N]. Throws std::invalid_argument for an id outside [0, V_t), naming table, position and id.
struct Embedding {
  View<const float, 2> table{};
  std::span<const std::int64_t> ids{};
};
HEADLIGHT_API void embed(Engine& engine, std::span<const Embedding> embeddings, View<float, 2> out);

// table_gradients[t][ids[t][n], :] += out_gradient[n, :] for ascending n, whatever the number of threads; out_gradient
// [N, E], table t [V_t, E], ids t [N], no table overlapping another.
struct EmbeddingGradient {
  View<float, 2> table{};
  std::span<const std::int64_t> ids{};
};
HEADLIGHT_API void embed_backward(Engine& engine, View<const float, 2> out_gradient,
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

}  // namespace headlight
