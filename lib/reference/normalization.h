// Plain twins of the row-wise operations: softmax and layer normalisation.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "headlight/tensor.h"

namespace headlight::reference {

// y_ij = exp(x_ij − m_i) / Σ_j exp(x_ij − m_i), m_i = max_j x_ij; x, y [N, L]. A row of −inf gives zeros; NaN and +inf
// make their row NaN. y may be x.
template <class Scalar>
void softmax(View<const Scalar, 2> x, View<Scalar, 2> y) {
  constexpr Scalar kNothing = -std::numeric_limits<Scalar>::infinity();
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    Scalar maximum = kNothing;
    for (std::int64_t j = 0; j < x.extent(1); ++j) maximum = std::max(maximum, x(n, j));
    Scalar total = 0;
    for (std::int64_t j = 0; j < x.extent(1); ++j) {
      y(n, j) = x(n, j) == kNothing ? 0 : std::exp(x(n, j) - maximum);
      total += y(n, j);
    }
    if (total == 0) continue;
    for (std::int64_t j = 0; j < x.extent(1); ++j) y(n, j) /= total;
  }
}

// y = (z − mean(z)) / sqrt(var(z) + epsilon) · weight + bias over the last axis, z = x + residual where given; x,
// residual, y [N, E], weight, bias [E] or not given (1 and 0); var is the biased one. y may be x or residual.
template <class Scalar>
void layer_norm(View<const Scalar, 2> x, View<const Scalar, 2> residual, View<const Scalar, 1> weight,
                View<const Scalar, 1> bias, Scalar epsilon, View<Scalar, 2> y) {
  const std::int64_t width = x.extent(1);
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    Scalar mean = 0;
    for (std::int64_t e = 0; e < width; ++e) {
      y(n, e) = residual ? x(n, e) + residual(n, e) : x(n, e);
      mean += y(n, e);
    }
    mean /= static_cast<Scalar>(width);
    Scalar variance = 0;
    for (std::int64_t e = 0; e < width; ++e) variance += (y(n, e) - mean) * (y(n, e) - mean);
    variance /= static_cast<Scalar>(width);
    for (std::int64_t e = 0; e < width; ++e) {
      const Scalar normal = (y(n, e) - mean) / std::sqrt(variance + epsilon);
      y(n, e) = (weight ? normal * weight(e) : normal) + (bias ? bias(e) : 0);
    }
  }
}

}  // namespace headlight::reference
