// Plain twin of the product with a weight matrix.
#pragma once

#include "headlight/tensor.h"

namespace headlight::reference {

// y [N, Out] = x [N, In] · weightᵀ + bias; weight [Out, In] as nn.Linear keeps it, bias [Out] or not given.
template <class Scalar>
void linear(View<const Scalar, 2> x, View<const Scalar, 2> weight, View<const Scalar, 1> bias, View<Scalar, 2> y) {
  for (std::int64_t n = 0; n < y.extent(0); ++n) {
    for (std::int64_t out = 0; out < y.extent(1); ++out) {
      Scalar sum = 0;
      for (std::int64_t in = 0; in < x.extent(1); ++in) sum += x(n, in) * weight(out, in);
      y(n, out) = bias ? sum + bias(out) : sum;
    }
  }
}

// Its gradients: x_gradient = y_gradient · weight; weight_gradient += y_gradientᵀ · x; bias_gradient += Σ y_gradient
// over rows, where given.
template <class Scalar>
void linear_backward(View<const Scalar, 2> x, View<const Scalar, 2> weight, View<const Scalar, 2> y_gradient,
                     View<Scalar, 2> x_gradient, View<Scalar, 2> weight_gradient, View<Scalar, 1> bias_gradient) {
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t in = 0; in < x.extent(1); ++in) {
      Scalar sum = 0;
      for (std::int64_t out = 0; out < weight.extent(0); ++out) sum += y_gradient(n, out) * weight(out, in);
      x_gradient(n, in) = sum;
    }
    for (std::int64_t out = 0; out < weight.extent(0); ++out) {
      for (std::int64_t in = 0; in < x.extent(1); ++in) weight_gradient(out, in) += y_gradient(n, out) * x(n, in);
      if (bias_gradient) bias_gradient(out) += y_gradient(n, out);
    }
  }
}

}  // namespace headlight::reference
