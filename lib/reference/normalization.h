// Plain twins of the row-wise operations: softmax and normalisations.
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

// w of rms_norm(): weight, or 1 + weight; 1 where none is given.
template <class Scalar>
Scalar norm_weight(View<const Scalar, 1> weight, bool one_plus_weight, std::int64_t e) {
  if (!weight) return 1;
  return one_plus_weight ? 1 + weight(e) : weight(e);
}

// y = x / sqrt(mean(x²) + epsilon) · w + added over the last axis; x, added, y [N, E], weight [E]. y may be x or added.
template <class Scalar>
void rms_norm(View<const Scalar, 2> x, View<const Scalar, 1> weight, bool one_plus_weight, Scalar epsilon,
              View<const Scalar, 2> added, View<Scalar, 2> y) {
  const std::int64_t width = x.extent(1);
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    Scalar squares = 0;
    for (std::int64_t e = 0; e < width; ++e) squares += x(n, e) * x(n, e);
    const Scalar root = std::sqrt(squares / static_cast<Scalar>(width) + epsilon);
    for (std::int64_t e = 0; e < width; ++e) {
      y(n, e) = x(n, e) / root * norm_weight(weight, one_plus_weight, e) + (added ? added(n, e) : 0);
    }
  }
}

// Gradients of rms_norm(): with n = x / root and g = y_gradient ∘ w, x_gradient = (g − n ∘ mean(g ∘ n)) / root;
// weight_gradient += Σ y_gradient ∘ n over rows, where given.
template <class Scalar>
void rms_norm_backward(View<const Scalar, 2> x, View<const Scalar, 2> y_gradient, View<const Scalar, 1> weight,
                       bool one_plus_weight, Scalar epsilon, View<Scalar, 2> x_gradient,
                       View<Scalar, 1> weight_gradient) {
  const auto width = static_cast<Scalar>(x.extent(1));
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    Scalar squares = 0, weighted = 0;
    for (std::int64_t e = 0; e < x.extent(1); ++e) squares += x(n, e) * x(n, e);
    const Scalar root = std::sqrt(squares / width + epsilon);
    const auto g = [&](std::int64_t e) { return y_gradient(n, e) * norm_weight(weight, one_plus_weight, e); };
    for (std::int64_t e = 0; e < x.extent(1); ++e) weighted += g(e) * x(n, e) / root;
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      if (weight_gradient) weight_gradient(e) += y_gradient(n, e) * x(n, e) / root;
      x_gradient(n, e) = (g(e) - x(n, e) / root * weighted / width) / root;
    }
  }
}

// x_gradient = y ∘ (y_gradient − Σ_j y_ij · y_gradient_ij), y = softmax(x); all [N, L].
template <class Scalar>
void softmax_backward(View<const Scalar, 2> y, View<const Scalar, 2> y_gradient, View<Scalar, 2> x_gradient) {
  for (std::int64_t n = 0; n < y.extent(0); ++n) {
    Scalar mean = 0;
    for (std::int64_t j = 0; j < y.extent(1); ++j) mean += y(n, j) * y_gradient(n, j);
    for (std::int64_t j = 0; j < y.extent(1); ++j) x_gradient(n, j) = y(n, j) * (y_gradient(n, j) - mean);
  }
}

// Gradients of layer_norm() without a residual: with n = (x − mean) / s, g = y_gradient ∘ weight,
// x_gradient = (g − mean(g) − n ∘ mean(g ∘ n)) / s; weight_gradient += Σ y_gradient ∘ n and bias_gradient += Σ
// y_gradient over rows, where given.
template <class Scalar>
void layer_norm_backward(View<const Scalar, 2> x, View<const Scalar, 2> y_gradient, View<const Scalar, 1> weight,
                         Scalar epsilon, View<Scalar, 2> x_gradient, View<Scalar, 1> weight_gradient,
                         View<Scalar, 1> bias_gradient) {
  const std::int64_t width = x.extent(1);
  Tensor<Scalar, 2> normal(x.shape);
  layer_norm<Scalar>(x, {}, {}, {}, epsilon, normal);
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    Scalar mean = 0, variance = 0, plain = 0, weighted = 0;
    for (std::int64_t e = 0; e < width; ++e) mean += x(n, e);
    mean /= static_cast<Scalar>(width);
    for (std::int64_t e = 0; e < width; ++e) variance += (x(n, e) - mean) * (x(n, e) - mean);
    const Scalar inverse = 1 / std::sqrt(variance / static_cast<Scalar>(width) + epsilon);
    for (std::int64_t e = 0; e < width; ++e) {
      const Scalar g = weight ? y_gradient(n, e) * weight(e) : y_gradient(n, e);
      plain += g;
      weighted += g * normal(n, e);
    }
    for (std::int64_t e = 0; e < width; ++e) {
      const Scalar g = weight ? y_gradient(n, e) * weight(e) : y_gradient(n, e);
      x_gradient(n, e) =
          (g - plain / static_cast<Scalar>(width) - normal(n, e) * weighted / static_cast<Scalar>(width)) * inverse;
      if (weight_gradient) weight_gradient(e) += y_gradient(n, e) * normal(n, e);
      if (bias_gradient) bias_gradient(e) += y_gradient(n, e);
    }
  }
}

}  // namespace headlight::reference
