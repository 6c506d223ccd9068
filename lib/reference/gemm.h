// Plain twin of the matrix product.
#pragma once

#include "headlight/gemm.h"
#include "headlight/tensor.h"
#include "reference/activation.h"

namespace headlight::reference {

template <class Scalar>
struct GemmOptions {
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  Scalar alpha = 1;
  Scalar beta = 0;             // with 0, C is not read
  View<const Scalar, 1> bias;  // [N] or not given
  Activation activation = Activation::none;
  View<const Scalar, 2> residual;  // [M, N] or not given
};

// C [M, N] = activation(α · op(A) [M, K] · op(B) [K, N] + β · C + bias) + residual.
template <class Scalar>
void gemm(View<const Scalar, 2> a, View<const Scalar, 2> b, View<Scalar, 2> c,
          const GemmOptions<Scalar>& options = {}) {
  const bool transposed_a = options.transpose_a == Transpose::yes;
  const bool transposed_b = options.transpose_b == Transpose::yes;
  const std::int64_t depth = a.extent(transposed_a ? 0 : 1);
  for (std::int64_t m = 0; m < c.extent(0); ++m) {
    for (std::int64_t n = 0; n < c.extent(1); ++n) {
      Scalar sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        sum += (transposed_a ? a(k, m) : a(m, k)) * (transposed_b ? b(n, k) : b(k, n));
      }
      Scalar value = options.alpha * sum;
      if (options.beta != 0) value += options.beta * c(m, n);
      if (options.bias) value += options.bias(n);
      value = activate(options.activation, value);
      c(m, n) = options.residual ? value + options.residual(m, n) : value;
    }
  }
}

}  // namespace headlight::reference
