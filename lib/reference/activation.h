// Plain twins of the pointwise functions, on libm.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "headlight/activation.h"

namespace headlight::reference {

// NaN stays NaN.
template <class Scalar>
Scalar relu(Scalar x) {
  return x < 0 ? Scalar{0} : x;
}

// x Φ(x). erfc keeps its precision where Φ is tiny, 1 + erf would not.
template <class Scalar>
Scalar gelu(Scalar x) {
  if (x == -std::numeric_limits<Scalar>::infinity()) return -Scalar{0};
  return x * std::erfc(-x / std::numbers::sqrt2_v<Scalar>) / 2;
}

// x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))
template <class Scalar>
Scalar gelu_tanh(Scalar x) {
  if (x == -std::numeric_limits<Scalar>::infinity()) return -Scalar{0};
  const Scalar inner = std::sqrt(2 / std::numbers::pi_v<Scalar>) * (x + static_cast<Scalar>(0.044715) * x * x * x);
  return x / 2 * (1 + std::tanh(inner));
}

// cap · tanh(factor · x / cap), and its derivative.
template <class Scalar>
Scalar softcap(Scalar factor, Scalar cap, Scalar x) {
  return cap * std::tanh(factor * x / cap);
}
template <class Scalar>
Scalar softcap_derivative(Scalar factor, Scalar cap, Scalar x) {
  const Scalar of_cosh = 1 / std::cosh(factor * x / cap);
  return factor * of_cosh * of_cosh;
}

// x / (1 + e⁻ˣ)
template <class Scalar>
Scalar silu(Scalar x) {
  if (x == -std::numeric_limits<Scalar>::infinity()) return -Scalar{0};
  return x / (1 + std::exp(-x));
}

template <class Scalar>
Scalar activate(Activation activation, Scalar x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::silu:
      return silu(x);
  }
  return x;
}

// The derivatives. relu′(0) = 0.
template <class Scalar>
Scalar activation_derivative(Activation activation, Scalar x) {
  constexpr Scalar kDensity = std::numbers::inv_sqrtpi_v<Scalar> / std::numbers::sqrt2_v<Scalar>;  // 1 / √(2π)
  switch (activation) {
    case Activation::none:
      return 1;
    case Activation::relu:
      return x <= 0 ? 0 : 1;
    case Activation::gelu:
      // Φ(x) + x φ(x)
      return std::erfc(-x / std::numbers::sqrt2_v<Scalar>) / 2 + x * kDensity * std::exp(-x * x / 2);
    case Activation::gelu_tanh: {
      const Scalar root = std::sqrt(2 / std::numbers::pi_v<Scalar>);
      const Scalar cubic = static_cast<Scalar>(0.044715);
      const Scalar tanh = std::tanh(root * (x + cubic * x * x * x));
      return (1 + tanh) / 2 + x / 2 * (1 - tanh * tanh) * root * (1 + 3 * cubic * x * x);
    }
    case Activation::silu: {
      // σ(x) (1 + x σ(−x))
      const Scalar sigmoid = 1 / (1 + std::exp(-x)), other = 1 / (1 + std::exp(x));
      return sigmoid * (1 + x * other);
    }
  }
  return 1;
}

}  // namespace headlight::reference
