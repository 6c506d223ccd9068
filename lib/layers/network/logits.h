// Logits of hidden states: what comes behind the operations of a network, for as many rows as a caller asks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headlight/engine.h"
#include "headlight/view.h"
#include "layers/network/parameters.h"

namespace headlight::layers {

// Those of LogitsSpec.
struct Logits {
  MatrixParameter* weight = nullptr;  // null: there are none
  VectorParameter* bias = nullptr;
  float factor = 1;
  float cap = 0;

  void forward(Engine& engine, View<const float, 2> hidden, View<float, 2> logits) const;
  // logits_gradient becomes that of the product; `logits` are read where there is a cap.
  void backward(Engine& engine, View<const float, 2> hidden, View<const float, 2> logits,
                View<float, 2> logits_gradient, View<float, 2> hidden_gradient) const;
  // What forward() takes from the engine for so many rows or fewer.
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t rows) const;
  void pack_weights(Engine& engine) const;
};

}  // namespace headlight::layers
