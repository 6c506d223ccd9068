// Layers in training against their float64 twins.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "layers/twins.h"
#include "support/compare.h"
#include "support/gradient_check.h"

namespace headlight::test {

// Gradients in float32 of sums of a few hundred products.
inline constexpr GradientCheck kLayerCheck = {.tolerance = 2e-5, .places = 60};

// Every parameter's gradient against the differences of `loss`, which reads the twin's weights.
inline void expect_parameter_gradients(Layer& layer, TwinWeights<double>& twin, const std::function<double()>& loss,
                                       const GradientCheck& check = kLayerCheck) {
  for (const Parameter& parameter : layer.parameters()) {
    ASSERT_EQ(parameter.gradient.size(), parameter.values.size()) << parameter.name;
    std::vector<double>& values = twin.values(parameter.name);
    EXPECT_TRUE(gradient_agrees(values.data(), parameter.gradient.data(), static_cast<std::int64_t>(values.size()),
                                loss, check))
        << parameter.name;
  }
}

// x [batch, length, 8], and a memory [batch, memory_length, 8] for who looks at one.
struct LayerShape {
  std::int64_t batch, length, memory_length = 0;
};

// An encoder layer of random numbers in training: the gradients of its input and of every parameter.
inline void expect_encoder_layer_gradients(Engine& engine, Random& random, const TransformerLayerOptions& made,
                                           const LayerShape& shape, const AttentionOptions& self) {
  TransformerEncoderLayer layer(made);
  randomize(layer, random);
  layer.set_training(true);
  const auto x = random.normal_tensor<3>({shape.batch, shape.length, 8});
  const auto weights = random.normal_tensor<3>(x.shape());
  const TrainingStep step = {.seed = random.next(), .step = 3, .layer = 1, .layers = 2};
  Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
  SavedState saved;
  layer.forward(engine, x, y, saved, step, self);
  layer.backward(engine, x, saved, weights, x_gradient);

  TwinWeights<double> twin(layer.weights());
  Tensor<double, 3> twin_x = converted<double>(x);
  const Tensor<double, 3> twin_weights = converted<double>(weights);
  const auto loss = [&] {
    Tensor<double, 3> out = converted<double>(twin_x);
    reference::EncoderLayer<double> twin_layer = twin.encoder_layer("", made);
    twin_layer.dropouts = dropouts_of(step, made.dropout);
    reference::encoder_layer(twin_layer, out, self);
    return weighted_sum(out, twin_weights);
  };
  EXPECT_TRUE(gradient_agrees(twin_x, x_gradient, loss, kLayerCheck));
  expect_parameter_gradients(layer, twin, loss);
}

// A decoder layer, and the gradient of the memory too; without `self` with what it takes by itself, which is causal.
inline void expect_decoder_layer_gradients(Engine& engine, Random& random, const TransformerLayerOptions& made,
                                           const LayerShape& shape, const std::optional<AttentionOptions>& self = {},
                                           const AttentionOptions& cross = {}) {
  TransformerDecoderLayer layer(made);
  randomize(layer, random);
  layer.set_training(true);
  const auto x = random.normal_tensor<3>({shape.batch, shape.length, 8});
  const auto memory = random.normal_tensor<3>({shape.batch, shape.memory_length, 8});
  const auto weights = random.normal_tensor<3>(x.shape());
  const TrainingStep step = {.seed = random.next()};
  Tensor<float, 3> y(x.shape()), x_gradient(x.shape()), memory_gradient(memory.shape());
  SavedState saved;
  if (self) {
    layer.forward(engine, x, memory, y, saved, step, *self, cross);
  } else {
    layer.forward(engine, x, memory, y, saved, step);
  }
  layer.backward(engine, x, memory, saved, weights, x_gradient, memory_gradient);

  TwinWeights<double> twin(layer.weights());
  Tensor<double, 3> twin_x = converted<double>(x), twin_memory = converted<double>(memory);
  const Tensor<double, 3> twin_weights = converted<double>(weights);
  const auto loss = [&] {
    Tensor<double, 3> out = converted<double>(twin_x);
    reference::DecoderLayer<double> twin_layer = twin.decoder_layer(made);
    twin_layer.dropouts = dropouts_of(step, made.dropout);
    reference::decoder_layer<double>(twin_layer, out, twin_memory,
                                     self.value_or(AttentionOptions{.causal = Causal::top_left}), cross);
    return weighted_sum(out, twin_weights);
  };
  EXPECT_TRUE(gradient_agrees(twin_x, x_gradient, loss, kLayerCheck)) << "x";
  EXPECT_TRUE(gradient_agrees(twin_memory, memory_gradient, loss, kLayerCheck)) << "memory";
  expect_parameter_gradients(layer, twin, loss);
}

}  // namespace headlight::test
