// Heads to measure, from seeds: tests/golden/heads.py makes the same.
#pragma once

#include <cmath>
#include <cstdint>

#include "headlight/tensor.h"
#include "support/random.h"

namespace headlight::test {

// Sharp and blunt rows [H, L, L] that sum to 1, many weights 0.
inline Tensor<double, 3> head_weights(Random& random, std::int64_t heads, std::int64_t length) {
  Tensor<double, 3> weights({heads, length, length});
  for (double& weight : weights) {
    const auto u = static_cast<double>(random.uniform());
    weight = u < -0.25 ? 0.0 : std::pow(1 + u, 4);
  }
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < length; ++i) {
      weights(h, i, 0) += 0.125;
      double sum = 0;
      for (std::int64_t j = 0; j < length; ++j) sum += weights(h, i, j);
      for (std::int64_t j = 0; j < length; ++j) weights(h, i, j) /= sum;
    }
  }
  return weights;
}

// Outputs [N, H, D] of heads that have more or less in common, away from the origin.
inline Tensor<double, 3> head_outputs(Random& random, std::int64_t rows, std::int64_t heads, std::int64_t head_dim) {
  Tensor<double, 3> x = converted<double>(random.normal_tensor<3>({rows, heads, head_dim}));
  const Tensor<float, 2> common = random.normal_tensor<2>({rows, head_dim});
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t d = 0; d < head_dim; ++d) {
        x(n, h, d) += static_cast<double>(common(n, d)) * static_cast<double>(h) + 2;
      }
    }
  }
  return x;
}

// Head h of [N, H, D], [N, D]; of weights [H, L, L], [L, L].
template <class T>
View<const T, 2> head_of_outputs(const Tensor<T, 3>& x, std::int64_t h) {
  return {&x(0, h, 0), {x.shape()[0], x.shape()[2]}, {x.shape()[1] * x.shape()[2], 1}};
}
template <class T>
View<const T, 2> head_of_weights(const Tensor<T, 3>& weights, std::int64_t h) {
  return {&weights(h, 0, 0), {weights.shape()[1], weights.shape()[2]}};
}

// [H, everything else]: each head of [N, H, D] as one row.
template <class T>
Tensor<T, 2> heads_as_rows(const Tensor<T, 3>& x) {
  const auto [rows, heads, head_dim] = x.shape();
  Tensor<T, 2> flat({heads, rows * head_dim});
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t n = 0; n < rows; ++n) {
      for (std::int64_t d = 0; d < head_dim; ++d) flat(h, n * head_dim + d) = x(n, h, d);
    }
  }
  return flat;
}

}  // namespace headlight::test
