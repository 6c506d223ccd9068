// Which pointwise non-linearities there are: activation.h applies them to rows, gemm.h to a product.
#pragma once

#include <cstdint>

namespace headlight {

// What is done to each number of a product, or of a tensor.
enum class Activation : std::uint8_t {
  none,       // the number itself
  relu,       // max(x, 0)
  gelu,       // x · Φ(x), Φ the normal distribution function (Hendrycks & Gimpel 2016; BERT)
  gelu_tanh,  // x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))) (GPT-2's "gelu_new")
  silu,       // x · σ(x), σ(x) = 1 / (1 + e⁻ˣ) (Hendrycks & Gimpel 2016; SwiGLU)
};

// Every value up to this one is an activation.
inline constexpr Activation kLastActivation = Activation::silu;

}  // namespace headlight
