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

// table_gradient[ids[n], :] += out_gradient[n, :]
template <class Scalar>
void embed_backward(View<const Scalar, 2> out_gradient, std::span<const std::int64_t> ids,
                    View<Scalar, 2> table_gradient) {
  for (std::int64_t n = 0; n < out_gradient.extent(0); ++n) {
    for (std::int64_t e = 0; e < out_gradient.extent(1); ++e) {
      table_gradient(ids[static_cast<std::size_t>(n)], e) += out_gradient(n, e);
    }
  }
}

// The gradient of mean_pool() by x: every row of a sequence gets 1/length of the mean's gradient, which with
// l2_normalize is (g − o (o · g)) / ‖mean‖, o = mean / ‖mean‖, or g / 1e-12 where the mean is shorter than that.
template <class Scalar>
void mean_pool_backward(View<const Scalar, 2> x, std::span<const std::int64_t> offsets,
                        View<const Scalar, 2> out_gradient, View<Scalar, 2> x_gradient, bool l2_normalize) {
  Tensor<Scalar, 2> mean(out_gradient.shape);
  mean_pool<Scalar>(x, offsets, mean, false);
  for (std::int64_t s = 0; s < mean.shape()[0]; ++s) {
    const std::int64_t begin = offsets[static_cast<std::size_t>(s)];
    const std::int64_t end = offsets[static_cast<std::size_t>(s) + 1];
    Scalar squares = 0, along = 0;
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      squares += mean(s, e) * mean(s, e);
      along += mean(s, e) * out_gradient(s, e);
    }
    const Scalar least = static_cast<Scalar>(1e-12);
    const Scalar norm = std::sqrt(squares);
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      Scalar gradient = out_gradient(s, e);
      if (l2_normalize) gradient = norm < least ? gradient / least : (gradient - mean(s, e) * along / squares) / norm;
      for (std::int64_t n = begin; n < end; ++n) x_gradient(n, e) = gradient / static_cast<Scalar>(end - begin);
    }
  }
}

}  // namespace headlight::reference
