// Row-wise operations: softmax, layer normalisation, pooling, embedding lookup.
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

// y = (z − mean(z)) / sqrt(var(z) + epsilon) · weight + bias over the last axis, z = x + residual where given; x, y [N,
// E], weight, bias [E] (empty: 1 and 0), var is the biased one. y may be x or residual. (Ba et al. 2016)
struct LayerNormOptions {
  std::span<const float> weight{};
  std::span<const float> bias{};
  float epsilon = 1e-5f;
  View<const float, 2> residual{};
};
HEADLIGHT_API void layer_norm(Engine& engine, View<const float, 2> x, View<float, 2> y,
                              const LayerNormOptions& options = {});

// out[n, :] = Σ_t tables[t][ids[t][n], :] (word, position and token-type embeddings in one pass); out [N, E], table t
// [V_t, E], ids t [N]. Throws std::invalid_argument for an id outside [0, V_t), naming table, position and id.
struct Embedding {
  View<const float, 2> table{};
  std::span<const std::int64_t> ids{};
};
HEADLIGHT_API void embed(Engine& engine, std::span<const Embedding> embeddings, View<float, 2> out);

// out[s, :] = mean of rows offsets[s] … offsets[s+1] − 1 of x; x [N, E], out [n, E], offsets [n + 1] ascending from 0
// to N. An empty sequence gives zeros. With l2_normalize each out row is divided by max(‖row‖₂, 1e-12).
HEADLIGHT_API void mean_pool(Engine& engine, View<const float, 2> x, std::span<const std::int64_t> offsets,
                             View<float, 2> out, bool l2_normalize);

}  // namespace headlight
