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

}  // namespace headlight::reference
