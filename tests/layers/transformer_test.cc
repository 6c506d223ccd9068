// Feed-forward, encoder and decoder layers against their float64 twins.
#include "headlight/layers/transformer.h"

#include <array>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/network.h"
#include "layers/encoder_specification.h"
#include "layers/shards.h"
#include "layers/twins.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"

namespace headlight::test::transformer_test {

using TransformerTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TransformerTest);

constexpr std::array<Activation, 4> kActivations = {Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                                    Activation::silu};

// Both norms, every activation, with and without bias.
template <class Check>
void for_every_option(Check check) {
  for (const Norm norm : {Norm::post, Norm::pre}) {
    for (const Activation activation : kActivations) {
      for (const bool bias : {false, true}) {
        SCOPED_TRACE(testing::Message() << "norm " << static_cast<int>(norm) << ", activation "
                                        << static_cast<int>(activation) << ", bias " << bias);
        check(TransformerLayerOptions{
            .width = 36, .heads = 3, .feed_forward_width = 70, .norm = norm, .activation = activation, .bias = bias});
      }
    }
  }
}

// x → y, and x → x with the same bits.
template <class Forward>
void check_both_places(Forward forward, const Tensor<float, 3>& x, const Tensor<float, 3>& plain,
                       const Tensor<double, 3>& truth) {
  Tensor<float, 3> y(x.shape());
  forward(View<const float, 3>(x), y.view());
  EXPECT_TRUE(at_most_twice_the_plain_error(y.view(), plain.view(), truth.view()));
  Tensor<float, 3> in_place = converted<float>(x);
  forward(View<const float, 3>(in_place), in_place.view());
  EXPECT_TRUE(same_bits(in_place.view(), y.view())) << "in place";
}

TEST_P(TransformerTest, EncoderLayerAgreesWithTheTwin) {
  Engine engine(options());
  Random random(1);
  for_every_option([&](const TransformerLayerOptions& made) {
    TransformerEncoderLayer layer(made);
    randomize(layer, random);
    const Tensor<float, 3> x = random.normal_tensor<3>({3, 11, 36});
    const std::vector<std::int64_t> lengths = {11, 1, 7};
    AttentionOptions attention_options;
    attention_options.key_lengths = lengths;
    Tensor<double, 3> truth = converted<double>(x);
    Tensor<float, 3> plain = converted<float>(x);
    reference::encoder_layer(TwinWeights<double>(layer.weights()).encoder_layer("", made), truth, attention_options);
    reference::encoder_layer(TwinWeights<float>(layer.weights()).encoder_layer("", made), plain, attention_options);
    check_both_places([&](auto from, auto to) { layer.forward(engine, from, to, attention_options); }, x, plain, truth);
  });
}

TEST_P(TransformerTest, DecoderLayerAgreesWithTheTwin) {
  Engine engine(options());
  Random random(2);
  for_every_option([&](const TransformerLayerOptions& made) {
    TransformerDecoderLayer layer(made);
    randomize(layer, random);
    const Tensor<float, 3> x = random.normal_tensor<3>({2, 9, 36});
    const Tensor<float, 3> memory = random.normal_tensor<3>({2, 14, 36});
    const Tensor<double, 3> memory64 = converted<double>(memory);
    Tensor<double, 3> truth = converted<double>(x);
    Tensor<float, 3> plain = converted<float>(x);
    const AttentionOptions causal{.causal = Causal::top_left};
    reference::decoder_layer<double>(TwinWeights<double>(layer.weights()).decoder_layer(made), truth, memory64, causal);
    reference::decoder_layer<float>(TwinWeights<float>(layer.weights()).decoder_layer(made), plain, memory, causal);
    check_both_places([&](auto from, auto to) { layer.forward(engine, from, memory, to); }, x, plain, truth);
  });
}

// Samples without rows are no work, wherever they would lie: there may be more of them than anybody counts.
TEST(EmptyBatches, OfFeedForwardAreOverAtOnce) {
  Engine engine(EngineOptions{.threads = 1});
  const FeedForward layer({.width = 8, .hidden_width = 16});
  constexpr std::int64_t kEndless = std::int64_t{1} << 50;
  const View<const float, 3> x(nullptr, {kEndless, 0, 8}, {3, 8, 1});
  EXPECT_NO_THROW(layer.forward(engine, x, View<float, 3>(nullptr, {kEndless, 0, 8}, {5, 8, 1})));
}

// Of x, of the memory, or of both.
TEST(EmptyBatches, GoThroughLayersBothWays) {
  Engine engine(EngineOptions{.threads = 1});
  for (const Norm norm : {Norm::post, Norm::pre}) {
    TransformerEncoderLayer encoder({.width = 8, .heads = 2, .norm = norm});
    TransformerDecoderLayer decoder({.width = 8, .heads = 2, .norm = norm});
    encoder.set_training(true);
    decoder.set_training(true);
    for (const auto& [batch, length, memory_length] :
         {std::array<std::int64_t, 3>{2, 3, 0}, {2, 0, 4}, {2, 0, 0}, {0, 3, 4}}) {
      Tensor<float, 3> x({batch, length, 8}), y(x.shape()), x_gradient(x.shape());
      Tensor<float, 3> memory({batch, memory_length, 8}), memory_gradient(memory.shape());
      for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input}) {
        SavedState saved(checkpoint);
        encoder.forward(engine, x, y);
        encoder.forward(engine, x, y, saved, {});
        encoder.backward(engine, x, saved, y, x_gradient);
        decoder.forward(engine, x, memory, y);
        decoder.forward(engine, x, memory, y, saved, {});
        decoder.backward(engine, x, memory, saved, y, x_gradient, memory_gradient);
      }
      for (const float gradient : memory_gradient) EXPECT_EQ(gradient, 0);
    }
  }
}

// No tokens, in a sequence without any or in none.
TEST(EmptyBatches, GoThroughNetworksBothWays) {
  Engine engine(EngineOptions{.threads = 1});
  for (const Norm norm : {Norm::post, Norm::pre}) {
    const EncoderOptions options = {.vocabulary = 5,
                                    .max_positions = 4,
                                    .token_types = 2,
                                    .width = 8,
                                    .heads = 2,
                                    .feed_forward_width = 16,
                                    .layers = 2,
                                    .norm = norm};
    Encoder encoder(options);
    Network network(specification(options));
    encoder.set_training(true);
    network.set_training(true);
    for (const std::vector<std::int64_t>& offsets : {std::vector<std::int64_t>{0}, {0, 0}, {0, 0, 0}}) {
      const EncoderInput input = {.offsets = offsets};
      const View<float, 2> hidden(nullptr, {0, 8});
      for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input}) {
        SavedState saved(checkpoint);
        encoder.forward(engine, input, hidden);
        encoder.forward(engine, input, hidden, saved, {});
        encoder.backward(engine, input, saved, hidden);
        network.forward(engine, input, hidden);
        network.forward(engine, input, hidden, saved);
        network.backward(engine, input, saved, hidden);
      }
    }
    for (Layer* const layer : {static_cast<Layer*>(&encoder), static_cast<Layer*>(&network)}) {
      for (const float gradient : gradients_of(layer->parameters())) EXPECT_EQ(gradient, 0);
    }
  }
}

// More rows than go through the two products at once, and samples that do not lie one after another.
TEST_P(TransformerTest, FeedForwardTakesRowsInPortionsAndSamplesApart) {
  Engine engine(options());
  Random random(3);
  FeedForward layer({.width = 3, .hidden_width = 5000, .activation = Activation::relu});
  randomize(layer, random);
  const Tensor<float, 3> memory = random.normal_tensor<3>({2, 480, 3});
  const View<const float, 3> x(memory.data(), {2, 431, 3}, {480 * 3, 3, 1});
  Tensor<float, 3> y({2, 431, 3});
  layer.forward(engine, x, y.view(), x);

  TwinWeights<double> weights(layer.weights());
  Tensor<double, 3> x64({2, 431, 3});
  for (std::int64_t n = 0; n < x64.size(); ++n) {
    x64.data()[n] = static_cast<double>(memory.data()[n / (431 * 3) * (480 * 3) + n % (431 * 3)]);
  }
  Tensor<double, 3> truth(x64.shape());
  reference::feed_forward<double>(weights.feed_forward("", Activation::relu), x64, truth);
  for (std::int64_t n = 0; n < truth.size(); ++n) truth.data()[n] += x64.data()[n];
  // Chains of 3 and 5000 products; the second's terms have mixed signs, so its error is some √5000 u of the row.
  EXPECT_TRUE(within(y.view(), truth.view(), 71 * kUnitRoundoff));
}

TEST(TransformerArguments, AreNamedWhenTheyAreWrong) {
  EXPECT_EQ(refusal([] { TransformerEncoderLayer({.width = 8, .heads = 2, .dropout = 1.0f}); }),
            "TransformerEncoderLayer: dropout is 1.000000, expected a probability in [0, 1)");
  EXPECT_EQ(refusal([] { TransformerEncoderLayer({.width = 8, .norm = static_cast<Norm>(2)}); }),
            "TransformerEncoderLayer: norm is 2, expected one of the enum");
  EXPECT_EQ(refusal([] { TransformerDecoderLayer({.width = 8, .norm = static_cast<Norm>(2)}); }),
            "TransformerDecoderLayer: norm is 2, expected one of the enum");
  EXPECT_EQ(refusal([] { TransformerDecoderLayer({.width = 8, .heads = 3}); }),
            "MultiHeadAttention: heads is 3, expected a divisor of width, which is 8");
  Engine engine;
  const TransformerDecoderLayer layer({.width = 8, .heads = 2});
  Tensor<float, 3> x({2, 3, 8});
  Tensor<float, 3> wrong({2, 3, 6});
  EXPECT_EQ(refusal([&] { layer.forward(engine, wrong.view(), x.view(), x.view()); }),
            "TransformerDecoderLayer: x has shape [2, 3, 6], expected [any, any, 8] ([B, L, E])");
  EXPECT_EQ(refusal([&] { layer.forward(engine, x.view(), wrong.view(), x.view()); }),
            "TransformerDecoderLayer: memory has shape [2, 3, 6], expected [2, any, 8] ([B, Lm, E])");
  EXPECT_EQ(refusal([&] { layer.forward(engine, x.view(), x.view(), x.view()); }),
            "TransformerDecoderLayer: y overlaps memory in memory");
}

TEST(TransformerArguments, SizesWhoseProductPasses63Bits) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  Engine engine({.threads = 1});
  for (const Norm norm : {Norm::post, Norm::pre}) {
    const TransformerEncoderLayer encoder({.width = 8, .heads = 2, .norm = norm});
    const TransformerDecoderLayer decoder({.width = 8, .heads = 2, .norm = norm});
    const auto sizes = "[B, L] is [1099511627776, 1099511627776], expected";
    EXPECT_NE(refusal([&] { encoder.reserve(engine, kHuge, kHuge); }).find(sizes), std::string::npos);
    EXPECT_NE(refusal([&] { static_cast<void>(encoder.workspace_bytes(engine, kHuge, kHuge)); }).find(sizes),
              std::string::npos);
    EXPECT_NE(refusal([&] { decoder.reserve(engine, kHuge, kHuge, 1); }).find(sizes), std::string::npos);
    EXPECT_NE(refusal([&] { encoder.reserve(engine, -1, 4); }).find("[B, L] is [-1, 4], expected"), std::string::npos);
    // Rows that can be counted, but whose elements cannot be held.
    EXPECT_THROW(encoder.reserve(engine, kHuge, 1 << 20), std::exception);
  }
}

}  // namespace headlight::test::transformer_test
