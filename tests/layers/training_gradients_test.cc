// Gradients of every layer against central differences of its float64 twin, dropout included.
#include "headlight/attention_backward.h"
#include "layers/encoder_twin.h"
#include "layers/training_fixture.h"
#include "support/isas.h"
#include "support/keepings.h"
#include "support/refusal.h"

namespace headlight::test::training_gradients_test {

using TrainingGradientsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TrainingGradientsTest);

TEST_P(TrainingGradientsTest, LinearAndLayerNorm) {
  Engine engine(options());
  Random random(1);
  Linear linear(7, 5);
  LayerNorm norm(5);
  randomize(linear, random);
  randomize(norm, random);
  linear.set_training(true);
  norm.set_training(true);
  const auto x = random.normal_tensor<2>({9, 7});
  const auto weights = random.normal_tensor<2>({9, 5});
  Tensor<float, 2> between({9, 5}), between_gradient({9, 5}), x_gradient({9, 7});
  linear.forward(engine, x, between);
  norm.backward(engine, between, weights, between_gradient);
  linear.backward(engine, x, between_gradient, x_gradient);

  TwinWeights<double> linear_twin(linear.weights()), norm_twin(norm.weights());
  Tensor<double, 2> twin_x = converted<double>(x);
  const Tensor<double, 2> twin_weights = converted<double>(weights);
  const auto loss = [&] {
    Tensor<double, 2> y({9, 5});
    reference::linear<double>(twin_x, linear_twin.matrix("weight"), linear_twin.vector("bias"), y);
    reference::layer_norm<double>(y, {}, norm_twin.vector("weight"), norm_twin.vector("bias"), 1e-5, y);
    return weighted_sum(y, twin_weights);
  };
  EXPECT_TRUE(gradient_agrees(twin_x, x_gradient, loss, kLayerCheck));
  expect_parameter_gradients(linear, linear_twin, loss);
  expect_parameter_gradients(norm, norm_twin, loss);
}

TEST_P(TrainingGradientsTest, FeedForward) {
  Engine engine(options());
  Random random(2);
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    for (const float probability : {0.0f, 0.3f}) {
      FeedForward layer({.width = 6, .hidden_width = 11, .activation = activation, .dropout = probability});
      randomize(layer, random);
      layer.set_training(true);
      const auto x = random.normal_tensor<3>({2, 5, 6});
      const auto weights = random.normal_tensor<3>({2, 5, 6});
      const TrainingStep step = {.seed = random.next(), .step = 7};
      Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
      SavedState saved;
      layer.forward(engine, x, y, saved, step);
      layer.backward(engine, x, saved, weights, x_gradient);

      TwinWeights<double> twin(layer.weights());
      Tensor<double, 3> twin_x = converted<double>(x);
      const Tensor<double, 3> twin_weights = converted<double>(weights);
      const auto loss = [&] {
        Tensor<double, 3> out(x.shape());
        reference::feed_forward<double>(twin.feed_forward("", activation), twin_x, out, step.dropout(probability, 0));
        return weighted_sum(out, twin_weights);
      };
      EXPECT_TRUE(gradient_agrees(twin_x, x_gradient, loss, kLayerCheck));
      expect_parameter_gradients(layer, twin, loss);
    }
  }
}

// Which inputs are one tensor, and what becomes of their gradients.
void check_attention(const EngineOptions& engine_options, const MultiHeadAttentionOptions& made, SharedInputs inputs,
                     const AttentionOptions& options) {
  Engine engine(engine_options);
  Random random(3);
  MultiHeadAttention layer(made);
  randomize(layer, random);
  layer.set_training(true);
  const std::int64_t heads = layer.options().heads, groups = layer.options().key_value_heads;
  const auto query = random.normal_tensor<3>({2, 5, layer.options().width});
  const auto key = random.normal_tensor<3>({2, 7, layer.options().key_width});
  const auto value = random.normal_tensor<3>({2, 7, layer.options().value_width});
  const View<const float, 3> k = inputs == SharedInputs::all ? query.view() : key.view();
  const View<const float, 3> v = inputs == SharedInputs::none ? value.view() : k;
  const auto weights = random.normal_tensor<3>(query.shape());
  const TrainingStep step = {.seed = random.next(), .step = 1};
  Tensor<float, 3> out(query.shape()), query_gradient(query.shape()), key_gradient(key.shape()),
      value_gradient(value.shape());
  for (float& element : key_gradient) element = 1.0f;
  SavedState saved;
  layer.forward(engine, query, k, v, out, saved, step, options);
  MultiHeadAttentionGradients gradients = {.query = query_gradient, .accumulate_key_and_value = true};
  if (inputs != SharedInputs::all) gradients.key = key_gradient;
  if (inputs == SharedInputs::none) gradients.value = value_gradient;
  layer.backward(engine, query, k, v, saved, weights, gradients);
  for (float& element : key_gradient) element -= 1.0f;  // it was to be added to

  TwinWeights<double> twin(layer.weights());
  Tensor<double, 3> twin_query = converted<double>(query), twin_key = converted<double>(key),
                    twin_value = converted<double>(value);
  const Tensor<double, 3> twin_weights = converted<double>(weights);
  const auto loss = [&] {
    const View<const double, 3> twin_k = inputs == SharedInputs::all ? twin_query.view() : twin_key.view();
    Tensor<double, 3> twin_out(query.shape());
    AttentionOptions dropping = options;
    dropping.dropout = step.dropout(made.dropout, 0);
    reference::multi_head_attention<double>(twin.attention("", heads, groups, made.merge), twin_query, twin_k,
                                            inputs == SharedInputs::none ? twin_value.view() : twin_k, twin_out,
                                            dropping);
    return weighted_sum(twin_out, twin_weights);
  };
  EXPECT_TRUE(gradient_agrees(twin_query, query_gradient, loss, kLayerCheck)) << "query";
  if (inputs != SharedInputs::all) {
    EXPECT_TRUE(gradient_agrees(twin_key, key_gradient, loss, kLayerCheck)) << "key";
  }
  if (inputs == SharedInputs::none) {
    EXPECT_TRUE(gradient_agrees(twin_value, value_gradient, loss, kLayerCheck)) << "value";
  }
  expect_parameter_gradients(layer, twin, loss);
}

TEST_P(TrainingGradientsTest, MultiHeadAttention) {
  for (const float dropout : {0.0f, 0.3f}) {
    SCOPED_TRACE(dropout);
    check_attention(options(), {.width = 12, .heads = 3, .dropout = dropout}, SharedInputs::all,
                    {.causal = Causal::top_left});
    check_attention(options(), {.width = 12, .heads = 4, .key_value_heads = 2, .bias = false, .dropout = dropout},
                    SharedInputs::all, {});
    check_attention(options(), {.width = 8, .heads = 2, .packed_projection = false, .dropout = dropout},
                    SharedInputs::key_and_value, {});
    check_attention(
        options(), {.width = 8, .heads = 4, .key_value_heads = 2, .key_width = 5, .value_width = 7, .dropout = dropout},
        SharedInputs::none, {.window = {.left = 2, .right = 3}});
  }
}

// Of an additive mask, summed over the axes on which it is broadcast, whatever is kept.
TEST_P(TrainingGradientsTest, TheBiasOfAttention) {
  Engine engine(options());
  Random random(5);
  MultiHeadAttention layer({.width = 12, .heads = 4, .key_value_heads = 2, .dropout = 0.2f});
  randomize(layer, random);
  layer.set_training(true);
  const auto query = random.normal_tensor<3>({2, 5, 12}), memory = random.normal_tensor<3>({2, 7, 12});
  const auto weights = random.normal_tensor<3>(query.shape());
  const Tensor<double, 3> twin_query = converted<double>(query), twin_memory = converted<double>(memory),
                          twin_weights = converted<double>(weights);
  TwinWeights<double> twin(layer.weights());
  // The twin takes its bias in float32, so it stands on a grid that floats hold exactly, and so do its steps.
  constexpr double kGrid = 1.0 / 1024;
  for (const std::array<std::int64_t, 4>& shape :
       {std::array<std::int64_t, 4>{2, 4, 5, 7}, {1, 4, 1, 7}, {2, 1, 5, 7}, {1, 1, 1, 7}}) {
    Tensor<float, 4> bias(shape), bias_gradient(shape);
    for (float& element : bias) element = static_cast<float>(static_cast<double>(random.integer(-1500, 1500)) * kGrid);
    Tensor<double, 4> twin_bias = converted<double>(bias);
    const TrainingStep step = {.seed = random.next(), .step = 3};
    AttentionOptions attention = {.window = {.left = 2, .right = 4}, .bias = bias};
    const auto loss = [&] {
      Tensor<double, 3> out(query.shape());
      Tensor<float, 4> moved(shape);
      std::transform(twin_bias.begin(), twin_bias.end(), moved.begin(), [](double x) { return static_cast<float>(x); });
      AttentionOptions dropping = attention;
      dropping.bias = moved;
      dropping.dropout = step.dropout(0.2f, 0);
      reference::multi_head_attention<double>(twin.attention("", 4, 2, Merge::concatenate), twin_query, twin_memory,
                                              twin_memory, out, dropping);
      return weighted_sum(out, twin_weights);
    };
    for (const Keeping& keeping : kKeepings) {
      Tensor<float, 3> out(query.shape());
      SavedState saved = keeping.saved();
      layer.forward(engine, query, memory, memory, out, saved, step, attention);
      std::fill(bias_gradient.begin(), bias_gradient.end(), 7.0f);
      layer.backward(engine, query, memory, memory, saved, weights, {.bias = bias_gradient});
      EXPECT_TRUE(gradient_agrees(twin_bias, bias_gradient, loss, {.step = kGrid, .tolerance = 5e-5, .places = 60}))
          << keeping;
    }
  }
}

TEST_P(TrainingGradientsTest, EveryMerge) {
  for (const Merge merge :
       {Merge::average, Merge::weighted, Merge::weighted_by_input, Merge::gated_by_head, Merge::gated_by_element}) {
    SCOPED_TRACE(name(merge));
    check_attention(options(), {.width = 12, .heads = 3, .dropout = 0.3f, .merge = merge}, SharedInputs::all,
                    {.causal = Causal::top_left});
    check_attention(options(), {.width = 12, .heads = 1, .merge = merge}, SharedInputs::all, {});
    check_attention(options(), {.width = 8, .heads = 4, .key_value_heads = 2, .bias = false, .merge = merge},
                    SharedInputs::key_and_value, {});
    check_attention(options(), {.width = 8, .heads = 2, .key_width = 5, .value_width = 7, .merge = merge},
                    SharedInputs::none, {.window = {.left = 2, .right = 3}});
  }
}

// Without dropout the heads are put together in another way than by concatenation.
TransformerLayerOptions layer_options(Norm norm, Activation activation, float dropout, Merge merge) {
  return {.width = 8,
          .heads = 2,
          .feed_forward_width = 12,
          .norm = norm,
          .activation = activation,
          .dropout = dropout,
          .merge = dropout > 0 ? Merge::concatenate : merge};
}

TEST_P(TrainingGradientsTest, EncoderLayer) {
  Engine engine(options());
  Random random(4);
  for (const Norm norm : {Norm::post, Norm::pre}) {
    for (const float dropout : {0.0f, 0.2f}) {
      SCOPED_TRACE(testing::Message() << (norm == Norm::pre ? "pre" : "post") << ", dropout " << dropout);
      expect_encoder_layer_gradients(engine, random,
                                     layer_options(norm, Activation::gelu, dropout, Merge::weighted_by_input), {2, 5},
                                     {.causal = Causal::top_left});
    }
  }
}

TEST_P(TrainingGradientsTest, DecoderLayer) {
  Engine engine(options());
  Random random(5);
  for (const Norm norm : {Norm::post, Norm::pre}) {
    for (const float dropout : {0.0f, 0.2f}) {
      SCOPED_TRACE(testing::Message() << (norm == Norm::pre ? "pre" : "post") << ", dropout " << dropout);
      expect_decoder_layer_gradients(
          engine, random, layer_options(norm, Activation::relu, dropout, Merge::gated_by_element), {2, 4, 6});
    }
  }
}

}  // namespace headlight::test::training_gradients_test
