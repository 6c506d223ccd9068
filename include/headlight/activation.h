// Pointwise non-linearities.
#pragma once

#include <cstdint>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/view.h"

namespace headlight {

enum class Activation : std::uint8_t {
  none,
  relu,       // max(x, 0)
  gelu,       // x · Φ(x), Φ the normal distribution function (Hendrycks & Gimpel 2016; BERT)
  gelu_tanh,  // x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))) (GPT-2's "gelu_new")
};

// y [N, E] = activation(x [N, E]); y may be x itself. Last strides are 1. NaN propagates.
HEADLIGHT_API void activate(Engine& engine, Activation activation, View<const float, 2> x, View<float, 2> y);

}  // namespace headlight
