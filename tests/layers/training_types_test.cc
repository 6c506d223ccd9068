// Training with activations of bfloat16: the bits of the operations that it consists of, each of which has its twin,
// and gradients as near to float64's as the roundings allow.
#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/layers.h"
#include "headlight/normalization.h"
#include "layers/training_fixture.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::test::training_types_test {

using TrainingTypesTest = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(TrainingTypesTest);

constexpr std::int64_t kRows = 19, kWidth = 48, kHidden = 80;

Tensor<BFloat16, 2> rounded(const Tensor<float, 2>& from) {
  Tensor<BFloat16, 2> to(from.shape());
  std::transform(from.begin(), from.end(), to.begin(), [](float x) { return BFloat16(x); });
  return to;
}
Tensor<float, 2> widened(const Tensor<BFloat16, 2>& from) {
  Tensor<float, 2> to(from.shape());
  std::transform(from.begin(), from.end(), to.begin(), [](BFloat16 x) { return static_cast<float>(x); });
  return to;
}

// Query, key or value of a sequence: columns of [N, 3E], and so their gradients.
template <class T>
View<T, 4> third_of(Tensor<T, 2>& projected, std::int64_t which, std::int64_t heads) {
  return {projected.data() + which * kWidth, {1, kRows, heads, kWidth / heads}, {0, 3 * kWidth, kWidth / heads, 1}};
}
template <class T>
View<T, 4> heads_of(Tensor<T, 2>& rows, std::int64_t heads) {
  return {rows.data(), {1, kRows, heads, kWidth / heads}};
}

// A layer of the original transformer and its way back, put together from their operations, and the gradients by name.
// What is rounded for a product alone is left in float32 here, for the product rounds it as well.
class Parts {
 public:
  Parts(Engine& engine, const Weights& weights, std::int64_t heads)
      : engine_(engine), weights_(weights), heads_(heads), log_sum_exp_({1, heads, kRows}) {
    for (const auto& [name, weight] : weights) gradients[name].assign(weight.values.size(), 0.0f);
  }

  Tensor<float, 2> forward(const View<const float, 2>& x) {
    projected_ = rounded(product(x, "self_attn.in_proj_"));
    heads_out_ = Tensor<BFloat16, 2>({kRows, kWidth});
    attention(engine_, third_of(projected_, 0, heads_), third_of(projected_, 1, heads_),
              third_of(projected_, 2, heads_), heads_of(heads_out_, heads_), {.log_sum_exp = log_sum_exp_});
    inner1_ = product(widened(heads_out_), "self_attn.out_proj.", x);
    between_ = normalised(inner1_, "norm1.");
    hidden_ = widened(rounded(product(between_, "linear1.")));
    active_ = Tensor<float, 2>(hidden_.shape());
    activate(engine_, Activation::gelu, hidden_, active_);
    inner2_ = product(active_, "linear2.", between_);
    return normalised(inner2_, "norm2.");
  }

  Tensor<float, 2> backward(const View<const float, 2>& x, const View<const float, 2>& y_gradient) {
    const Tensor<float, 2> sum2 = norm_backward(inner2_, y_gradient, "norm2.");
    Tensor<float, 2> hidden_gradient = product_backward(active_, sum2, "linear2.");
    activate_backward(engine_, Activation::gelu, hidden_, hidden_gradient, hidden_gradient);
    const Tensor<float, 2> between_gradient = product_backward(between_, hidden_gradient, "linear1.", sum2);
    const Tensor<float, 2> sum1 = norm_backward(inner1_, between_gradient, "norm1.");
    Tensor<BFloat16, 2> heads_gradient = rounded(product_backward(widened(heads_out_), sum1, "self_attn.out_proj."));
    Tensor<float, 2> projected_gradient({kRows, 3 * kWidth});
    attention_backward(engine_, third_of(projected_, 0, heads_), third_of(projected_, 1, heads_),
                       third_of(projected_, 2, heads_), heads_of(heads_out_, heads_), log_sum_exp_,
                       heads_of(heads_gradient, heads_),
                       {.query = third_of(projected_gradient, 0, heads_),
                        .key = third_of(projected_gradient, 1, heads_),
                        .value = third_of(projected_gradient, 2, heads_)});
    return product_backward(x, projected_gradient, "self_attn.in_proj_", sum1);
  }

  std::map<std::string, std::vector<float>> gradients;

 private:
  [[nodiscard]] View<const float, 2> matrix(const std::string& prefix) const {
    const WeightView& weight = weights_.at(prefix + "weight");
    return {weight.values.data(), {weight.shape[0], weight.shape[1]}};
  }

  Tensor<float, 2> product(const View<const float, 2>& x, const std::string& prefix,
                           const View<const float, 2>& residual = {}) {
    const PackedMatrix packed(engine_, matrix(prefix), Transpose::yes, NumberType::bfloat16);
    Tensor<float, 2> y({x.extent(0), packed.columns()});
    gemm(engine_, x, packed, y, {.bias = weights_.at(prefix + "bias").values, .residual = residual});
    return y;
  }

  Tensor<float, 2> product_backward(const View<const float, 2>& x, const View<const float, 2>& y_gradient,
                                    const std::string& prefix, const View<const float, 2>& residual = {}) {
    const View<float, 2> gradient(gradients.at(prefix + "weight").data(), matrix(prefix).shape);
    const PackedMatrix of_x(engine_, x, Transpose::no, NumberType::bfloat16);
    gemm(engine_, y_gradient, of_x, gradient, {.transpose_a = Transpose::yes, .beta = 1});
    bias_backward(engine_, y_gradient, gradients.at(prefix + "bias"));
    Tensor<float, 2> x_gradient(x.shape);
    gemm(engine_, y_gradient, PackedMatrix(engine_, matrix(prefix), Transpose::no, NumberType::bfloat16), x_gradient,
         {.residual = residual});
    return x_gradient;
  }

  [[nodiscard]] LayerNormOptions norm_options(const std::string& prefix) const {
    return {.weight = weights_.at(prefix + "weight").values,
            .bias = weights_.at(prefix + "bias").values,
            .epsilon = TransformerLayerOptions().layer_norm_epsilon};
  }
  Tensor<float, 2> normalised(const Tensor<float, 2>& x, const std::string& prefix) {
    Tensor<float, 2> y(x.shape());
    layer_norm(engine_, x, y, norm_options(prefix));
    return y;
  }
  Tensor<float, 2> norm_backward(const Tensor<float, 2>& x, const View<const float, 2>& y_gradient,
                                 const std::string& prefix) {
    Tensor<float, 2> x_gradient(x.shape());
    layer_norm_backward(
        engine_, x, y_gradient,
        {.x = x_gradient, .weight = gradients.at(prefix + "weight"), .bias = gradients.at(prefix + "bias")},
        norm_options(prefix));
    return x_gradient;
  }

  Engine& engine_;
  const Weights& weights_;
  std::int64_t heads_;
  Tensor<float, 3> log_sum_exp_;
  Tensor<BFloat16, 2> projected_, heads_out_;
  Tensor<float, 2> inner1_, between_, hidden_, active_, inner2_;
};

View<const float, 2> matrix_of(const Tensor<float, 3>& x) { return {x.data(), {x.shape()[1], x.shape()[2]}}; }

TEST_P(TrainingTypesTest, ALayerIsItsPartsForwardAndBackward) {
  Engine engine(options());
  Random random(1);
  const auto x = random.normal_tensor<3>({1, kRows, kWidth}), y_gradient = random.normal_tensor<3>(x.shape());
  // Heads of 12 numbers, which are pairs, and of 3.
  for (const std::int64_t heads : {4, 16}) {
    TransformerEncoderLayer layer(
        {.width = kWidth, .heads = heads, .feed_forward_width = kHidden, .activation = Activation::gelu, .dropout = 0});
    randomize(layer, random);
    layer.set_training(true);
    SavedState saved(NumberType::bfloat16);
    Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
    layer.forward(engine, x, y, saved, {});
    layer.backward(engine, x, saved, y_gradient, x_gradient);

    const Weights weights = layer.weights();
    Parts parts(engine, weights, heads);
    EXPECT_TRUE(same_bits(matrix_of(y), View<const float, 2>(parts.forward(matrix_of(x)))));
    EXPECT_TRUE(
        same_bits(matrix_of(x_gradient), View<const float, 2>(parts.backward(matrix_of(x), matrix_of(y_gradient)))));
    for (const Parameter& parameter : layer.parameters()) {
      const std::vector<float>& expected = parts.gradients.at(parameter.name);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), parameter.gradient.begin())) << parameter.name;
    }
  }
}

// Every operand of a product is off by 2⁻⁹ of itself, and so is what is kept; a gradient has some eight products, of
// two operands each, before it.
constexpr GradientCheck kCheck = {.tolerance = 16 * 0x1p-9, .places = 60};

TEST_P(TrainingTypesTest, FULL_GradientsAreThoseOfFloat64ButForTheRoundings) {
  Engine engine(options());
  Random random(2);
  for (const Merge merge : {Merge::concatenate, Merge::weighted_by_input, Merge::gated_by_element}) {
    for (const Norm norm : {Norm::post, Norm::pre}) {
      if (quick() && (norm == Norm::pre) != (merge == Merge::weighted_by_input)) continue;
      SCOPED_TRACE(std::string(name(merge)) + (norm == Norm::pre ? ", pre" : ", post"));
      TransformerDecoderLayer layer(
          {.width = 16, .heads = 2, .feed_forward_width = 24, .norm = norm, .dropout = 0.1f, .merge = merge});
      randomize(layer, random);
      layer.set_training(true);
      const auto x = random.normal_tensor<3>({2, 9, 16}), memory = random.normal_tensor<3>({2, 7, 16});
      const auto weights = random.normal_tensor<3>(x.shape());
      const TrainingStep step = {.seed = random.next()};
      Tensor<float, 3> y(x.shape()), x_gradient(x.shape()), memory_gradient(memory.shape());
      SavedState saved(NumberType::bfloat16);
      layer.forward(engine, x, memory, y, saved, step);
      layer.backward(engine, x, memory, saved, weights, x_gradient, memory_gradient);

      TwinWeights<double> twin(layer.weights());
      Tensor<double, 3> twin_x = converted<double>(x), twin_memory = converted<double>(memory);
      const Tensor<double, 3> twin_weights = converted<double>(weights);
      const TransformerLayerOptions made = {.width = 16, .heads = 2, .norm = norm, .merge = merge};
      const auto loss = [&] {
        Tensor<double, 3> out = converted<double>(twin_x);
        reference::DecoderLayer<double> twin_layer = twin.decoder_layer(made);
        twin_layer.dropouts = dropouts_of(step, 0.1f);
        reference::decoder_layer<double>(twin_layer, out, twin_memory, {.causal = Causal::top_left}, {});
        return weighted_sum(out, twin_weights);
      };
      EXPECT_TRUE(gradient_agrees(twin_x, x_gradient, loss, kCheck)) << "x";
      EXPECT_TRUE(gradient_agrees(twin_memory, memory_gradient, loss, kCheck)) << "memory";
      expect_parameter_gradients(layer, twin, loss, kCheck);
    }
  }
}

// Whatever is beside it in the batch, and whatever view it is.
TEST_P(TrainingTypesTest, ASampleHasItsBitsAlone) {
  Engine engine(options(2));
  Random random(3);
  const auto all = random.normal_tensor<3>({3, 14, 32});
  const View<const float, 3> x(all.data(), {3, 11, 32}, all.view().strides);
  const auto y_gradient = random.normal_tensor<3>({3, 11, 32});
  TransformerEncoderLayer layer({.width = 32, .heads = 4, .feed_forward_width = 64, .dropout = 0});
  randomize(layer, random);
  layer.set_training(true);
  SavedState saved(NumberType::bfloat16);
  Tensor<float, 3> y({3, 11, 32}), x_gradient(y.shape()), one({1, 11, 32}), one_gradient(one.shape());
  layer.forward(engine, x, y, saved, {});
  layer.backward(engine, x, saved, y_gradient, x_gradient);
  for (std::int64_t b = 0; b < 3; ++b) {
    const View<const float, 3> alone(&x(b, 0, 0), {1, 11, 32}, x.strides);
    layer.forward(engine, alone, one, saved, {});
    layer.backward(engine, alone, saved, View<const float, 3>(&y_gradient(b, 0, 0), one.shape()), one_gradient);
    EXPECT_TRUE(same_bits(one.view(), View<float, 3>(&y(b, 0, 0), one.shape())));
    EXPECT_TRUE(same_bits(one_gradient.view(), View<float, 3>(&x_gradient(b, 0, 0), one.shape())));
  }
}

// Weights that are in panels are read back, and rounded as those of a layer in training.
TEST_P(TrainingTypesTest, ALayerThatDoesNotTrainComputesTheSame) {
  Engine engine(options());
  Random random(4);
  const auto x = random.normal_tensor<3>({2, 9, 16});
  TransformerEncoderLayer layer({.width = 16, .heads = 2, .feed_forward_width = 32, .dropout = 0});
  randomize(layer, random);
  Tensor<float, 3> closed(x.shape()), open(x.shape());
  layer.forward(engine, x, closed);
  SavedState saved(NumberType::bfloat16);
  layer.forward(engine, x, closed, saved, {});
  layer.set_training(true);
  layer.forward(engine, x, open, saved, {});
  EXPECT_TRUE(same_bits(closed, open));
}

// Half of queries, keys, values, heads and feed-forward activations, and all of the rest.
TEST(TrainingTypes, WhatIsKeptIsSmaller) {
  constexpr std::int64_t kTokens = 64;
  Engine engine;
  Random random(5);
  TransformerEncoderLayer layer({.width = 64, .heads = 4, .feed_forward_width = 256});
  randomize(layer, random);
  const auto x = random.normal_tensor<3>({1, kTokens, 64});
  Tensor<float, 3> y(x.shape());
  SavedState floats, narrow(NumberType::bfloat16);
  layer.forward(engine, x, y, floats, {});
  layer.forward(engine, x, y, narrow, {});
  // Rows are an odd number of lines: of 3 · 64, 64 and 256 numbers 13, 5 and 17, and 7, 3 and 9.
  EXPECT_EQ(floats.bytes() - narrow.bytes(), static_cast<std::size_t>(kTokens * 64 * (6 + 2 + 8)));
}

TEST(TrainingTypes, OthersAreRefused) {
  for (const NumberType type : {NumberType::float16, NumberType::int8, NumberType::int4}) {
    EXPECT_EQ(refusal([&] { SavedState saved(type); }),
              "SavedState: activations is " + std::string(name(type)) + ", expected float32 or bfloat16");
  }
  EXPECT_EQ(SavedState(NumberType::float32).activations(), NumberType::float32);
  EXPECT_EQ(SavedState(NumberType::bfloat16, Checkpoint::layer_input).checkpoint(), Checkpoint::layer_input);
}

}  // namespace headlight::test::training_types_test
