#include "layers/network/logits.h"

#include "layers/product.h"
#include "ops/rows/cap.h"
#include "ops/rows/scale.h"

namespace headlight::layers {

void Logits::forward(Engine& engine, View<const float, 2> hidden, View<float, 2> logits) const {
  multiply(engine, hidden, weight->matrix, weight->matrix.all(), logits,
           {.bias = bias == nullptr ? std::span<const float>() : bias->all()});
  if (cap > 0) {
    ops::cap_rows(engine, factor, cap, logits, logits);
  } else if (factor != 1) {
    ops::scale_rows(engine, logits, factor, {}, logits);
  }
}

void Logits::backward(Engine& engine, View<const float, 2> hidden, View<const float, 2> logits,
                      View<float, 2> logits_gradient, View<float, 2> hidden_gradient) const {
  if (cap > 0) {
    ops::cap_rows_backward(engine, factor, cap, logits, logits_gradient, logits_gradient);
  } else if (factor != 1) {
    ops::scale_rows(engine, logits_gradient, factor, {}, logits_gradient);
  }
  multiply_backward(engine, NumberType::float32,
                    {.x = hidden,
                     .y_gradient = logits_gradient,
                     .x_gradient = hidden_gradient,
                     .bias_gradient = bias == nullptr ? std::span<float>() : bias->all_of_gradient()},
                    weight->matrix, weight->matrix.all());
}

std::size_t Logits::workspace_bytes(const Engine& engine, std::int64_t rows) const {
  return weight == nullptr ? 0 : product_bytes_up_to(engine, rows, weight->matrix, weight->matrix.all());
}

void Logits::pack_weights(Engine& engine) const {
  if (weight != nullptr) static_cast<void>(weight->matrix.packed(engine, weight->matrix.all()));
}

}  // namespace headlight::layers
