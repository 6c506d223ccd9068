// Plain twins of what goes in and comes out of a model: embedding lookup and pooling.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "headlight/tensor.h"

namespace headlight::reference {

template <class Scalar>
struct Embedding {
  View<const Scalar, 2> table;        // [V, E]
  std::span<const std::int64_t> ids;  // [N], each in [0, V)
};

// out[n, :] = Σ_t tables[t][ids[t][n], :]; out [N, E].
template <class Scalar>
void embed(std::span<const Embedding<Scalar>> embeddings, View<Scalar, 2> out) {
  for (std::int64_t n = 0; n < out.extent(0); ++n) {
    for (std::int64_t e = 0; e < out.extent(1); ++e) {
      Scalar sum = 0;
      for (const Embedding<Scalar>& one : embeddings) sum += one.table(one.ids[static_cast<std::size_t>(n)], e);
      out(n, e) = sum;
    }
  }
}

// out[s, :] = mean of rows offsets[s] … offsets[s+1] − 1 of x [N, E], zeros where there are none; out [n, E], offsets
// [n + 1]. With l2_normalize each row is then divided by max(‖row‖₂, 1e-12).
template <class Scalar>
void mean_pool(View<const Scalar, 2> x, std::span<const std::int64_t> offsets, View<Scalar, 2> out, bool l2_normalize) {
  for (std::int64_t s = 0; s < out.extent(0); ++s) {
    const std::int64_t begin = offsets[static_cast<std::size_t>(s)];
    const std::int64_t end = offsets[static_cast<std::size_t>(s) + 1];
    Scalar squares = 0;
    for (std::int64_t e = 0; e < out.extent(1); ++e) {
      Scalar sum = 0;
      for (std::int64_t n = begin; n < end; ++n) sum += x(n, e);
      out(s, e) = begin == end ? 0 : sum / static_cast<Scalar>(end - begin);
      squares += out(s, e) * out(s, e);
    }
    if (!l2_normalize) continue;
    const Scalar norm = std::max(std::sqrt(squares), static_cast<Scalar>(1e-12));
    for (std::int64_t e = 0; e < out.extent(1); ++e) out(s, e) /= norm;
  }
}

}  // namespace headlight::reference
