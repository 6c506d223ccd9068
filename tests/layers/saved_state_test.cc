// backward() refuses what forward() was not given, before any gradient is added to: what is kept would be read
// elsewhere.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "support/compare.h"
#include "support/keepings.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::test::saved_state_test {

bool all_zero(const std::vector<Parameter>& parameters) {
  return std::ranges::all_of(parameters, [](const Parameter& parameter) {
    return std::ranges::all_of(parameter.gradient, [](float gradient) { return gradient == 0.0f; });
  });
}

void begin_training(Layer& layer) {
  layer.initialize(1);
  layer.set_training(true);
}

class EncoderPass : public testing::TestWithParam<Keeping> {
 protected:
  EncoderPass() : saved_(GetParam().saved()) {
    begin_training(encoder_);
    encoder_.forward(engine_, input_, hidden_, saved_, {.seed = 1});
  }
  // The gradients are still zero after whatever is not as it was in forward().
  void refuses(const EncoderInput& other) {
    EXPECT_THROW(encoder_.backward(engine_, other, saved_, hidden_), std::invalid_argument);
    EXPECT_TRUE(all_zero(encoder_.parameters()));
  }

  const std::vector<std::int64_t> ids_ = {1, 2, 3, 4, 5, 6, 7, 0}, positions_ = {0, 1, 2, 3, 0, 1, 2, 3};
  const std::vector<std::int64_t> offsets_ = {0, 4, 8};
  const EncoderInput input_ = {.ids = ids_, .positions = positions_, .offsets = offsets_};
  Engine engine_{{.threads = 1}};
  Encoder encoder_{{.vocabulary = 8, .max_positions = 8, .width = 8, .heads = 2, .layers = 2}};
  Tensor<float, 2> hidden_{{8, 8}};
  SavedState saved_;
};

TEST_P(EncoderPass, RefusesOtherSequences) {
  const std::vector<std::int64_t> one = {0, 8}, uneven = {0, 3, 8};
  refuses({.ids = ids_, .positions = positions_, .offsets = one});
  refuses({.ids = ids_, .positions = positions_, .offsets = uneven});
}

TEST_P(EncoderPass, RefusesWrongIdsBeforeItLearns) {
  std::vector<std::int64_t> wrong = ids_;
  wrong[3] = 8;
  refuses({.ids = wrong, .positions = positions_, .offsets = offsets_});
  wrong = positions_;
  wrong[7] = -1;
  refuses({.ids = ids_, .positions = wrong, .offsets = offsets_});
  wrong.pop_back();
  refuses({.ids = ids_, .positions = wrong, .offsets = offsets_});
}

TEST_P(EncoderPass, TakesEqualOnes) {
  const std::vector<std::int64_t> ids = ids_, positions = positions_, offsets = offsets_;
  encoder_.backward(engine_, {.ids = ids, .positions = positions, .offsets = offsets}, saved_, hidden_);
  EXPECT_FALSE(all_zero(encoder_.parameters()));
}

INSTANTIATE_TEST_SUITE_P(Of, EncoderPass, testing::ValuesIn(kKeepings));

// Self-attention keeps one product of three inputs that are one; a copy of the input would be looked for elsewhere.
TEST(AttentionPass, RefusesACopyOfAnInput) {
  Engine engine({.threads = 1});
  MultiHeadAttention attention({.width = 64, .heads = 4});
  begin_training(attention);
  Tensor<float, 3> x({2, 5, 64}), y(x.shape()), gradient(x.shape()), copy(x.shape()), copy_gradient(x.shape());
  for (std::int64_t n = 0; n < x.size(); ++n) x.data()[n] = static_cast<float>(n % 7) - 3.0f;
  std::copy(x.begin(), x.end(), copy.begin());
  SavedState saved;
  attention.forward(engine, x, x, x, y, saved, {.seed = 1});
  EXPECT_THROW(attention.backward(engine, x, copy, copy, saved, y, {.query = gradient, .key = copy_gradient}),
               std::invalid_argument);
  EXPECT_TRUE(all_zero(attention.parameters()));
  attention.backward(engine, x, x, x, saved, y, {.query = gradient});
  EXPECT_FALSE(all_zero(attention.parameters()));
}

// The stride of an axis of one element leads nowhere.
TEST(AttentionPass, TakesAnInputByAnotherStride) {
  Engine engine({.threads = 1});
  MultiHeadAttention attention({.width = 64, .heads = 4});
  begin_training(attention);
  Tensor<float, 3> x({1, 5, 64}), y(x.shape()), gradient(x.shape());
  for (std::int64_t n = 0; n < x.size(); ++n) x.data()[n] = static_cast<float>(n % 7) - 3.0f;
  const View<const float, 3> same(x.data(), x.shape(), {64, 64, 1});
  SavedState saved;
  attention.forward(engine, x, x, same, y, saved, {.seed = 1});
  attention.backward(engine, x, x, x, saved, y, {.query = gradient});
  EXPECT_FALSE(all_zero(attention.parameters()));
}

// What a layer in training says to a backward call, which left no gradient behind.
template <class Function>
std::string refused_whole(Layer& layer, Function backward) {
  const std::string words = refusal(backward);
  EXPECT_TRUE(all_zero(layer.parameters())) << words;
  return words;
}

View<const float, 3> without_memory(View<const float, 3> x) { return {nullptr, x.shape}; }

TEST(RefusedWhole, ALinearsResidual) {
  Engine engine({.threads = 1});
  Random random(1);
  Linear layer(4, 4);
  begin_training(layer);
  const auto x = random.normal_tensor<2>({3, 4}), gradient = random.normal_tensor<2>({3, 4});
  Tensor<float, 2> x_gradient({3, 4}), residual({2, 4});
  EXPECT_EQ(refused_whole(layer, [&] { layer.backward(engine, x, gradient, x_gradient, residual); }),
            "Linear: residual has shape [2, 4], expected [3, 4] (the shape of x)");
}

TEST(RefusedWhole, AFeedForwardsInput) {
  Engine engine({.threads = 1});
  Random random(1);
  FeedForward layer({.width = 8, .hidden_width = 16});
  begin_training(layer);
  const auto x = random.normal_tensor<3>({1, 4, 8}), gradient = random.normal_tensor<3>({1, 4, 8});
  Tensor<float, 3> y(x.shape()), x_gradient(x.shape()), narrow({1, 4, 6}), narrow_gradient({1, 4, 6});
  SavedState saved;
  layer.forward(engine, x, y, saved, {});
  EXPECT_EQ(refused_whole(layer, [&] { layer.backward(engine, without_memory(x), saved, gradient, x_gradient); }),
            refusal([&] { layer.forward(engine, without_memory(x), y); }));
  EXPECT_EQ(refused_whole(layer, [&] { layer.backward(engine, narrow, saved, narrow, narrow_gradient); }),
            "FeedForward: x has shape [1, 4, 6], expected [any, any, 8] ([B, L, E])");
}

TEST(RefusedWhole, AnAttentionsInputs) {
  Engine engine({.threads = 1});
  Random random(1);
  MultiHeadAttention layer({.width = 8, .heads = 2});
  begin_training(layer);
  const auto x = random.normal_tensor<3>({2, 4, 8}), gradient = random.normal_tensor<3>({2, 4, 8});
  const auto key = random.normal_tensor<3>({2, 5, 8}), value = random.normal_tensor<3>({2, 5, 8});
  Tensor<float, 3> out(x.shape()), x_gradient(x.shape()), narrow({2, 5, 6}), shorter({2, 3, 8}), fewer({1, 5, 8});
  SavedState saved;
  layer.forward(engine, x, x, x, out, saved, {});
  const View<const float, 3> nothing = without_memory(x);
  EXPECT_EQ(
      refused_whole(layer,
                    [&] { layer.backward(engine, nothing, nothing, nothing, saved, gradient, {.query = x_gradient}); }),
      refusal([&] { layer.forward(engine, nothing, nothing, nothing, out); }));
  layer.forward(engine, x, key, value, out, saved, {});
  const auto refused = [&](View<const float, 3> keys, View<const float, 3> values) {
    return refused_whole(layer,
                         [&] { layer.backward(engine, x, keys, values, saved, gradient, {.query = x_gradient}); });
  };
  EXPECT_EQ(refused(key, narrow),
            "MultiHeadAttention: value has shape [2, 5, 6], expected [2, 5, 8] ([B, Lk, "
            "value_width])");
  EXPECT_EQ(refused(key, shorter),
            "MultiHeadAttention: value has shape [2, 3, 8], expected [2, 5, 8] ([B, Lk, "
            "value_width])");
  EXPECT_EQ(refused(key, fewer),
            "MultiHeadAttention: value has shape [1, 5, 8], expected [2, 5, 8] ([B, Lk, "
            "value_width])");
  EXPECT_EQ(refused(narrow, value),
            "MultiHeadAttention: key has shape [2, 5, 6], expected [2, any, 8] ([B, Lk, "
            "key_width])");
  EXPECT_EQ(refused(without_memory(key), value),
            refusal([&] { layer.forward(engine, x, without_memory(key), value, out); }));
}

TEST(RefusedWhole, ATransformerLayersInputs) {
  Engine engine({.threads = 1});
  Random random(1);
  const auto x = random.normal_tensor<3>({2, 4, 8}), gradient = random.normal_tensor<3>({2, 4, 8});
  const auto memory = random.normal_tensor<3>({2, 5, 8});
  Tensor<float, 3> y(x.shape()), x_gradient(x.shape()), narrow({2, 4, 6}), narrow_gradient({2, 4, 6}),
      narrow_memory({2, 5, 6}), fewer({1, 5, 8});
  for (const Norm norm : {Norm::post, Norm::pre}) {
    SavedState saved;
    TransformerEncoderLayer encoder({.width = 8, .heads = 2, .norm = norm});
    begin_training(encoder);
    encoder.forward(engine, x, y, saved, {});
    EXPECT_EQ(refused_whole(encoder, [&] { encoder.backward(engine, narrow, saved, narrow, narrow_gradient); }),
              "TransformerEncoderLayer: x has shape [2, 4, 6], expected [any, any, 8] ([B, L, E])");

    TransformerDecoderLayer decoder({.width = 8, .heads = 2, .norm = norm});
    begin_training(decoder);
    decoder.forward(engine, x, memory, y, saved, {});
    const auto refused = [&](View<const float, 3> other) {
      return refused_whole(decoder, [&] { decoder.backward(engine, x, other, saved, gradient, x_gradient); });
    };
    EXPECT_EQ(refused(narrow_memory),
              "TransformerDecoderLayer: memory has shape [2, 5, 6], expected [2, any, 8] ([B, Lm, E])");
    EXPECT_EQ(refused(fewer), "TransformerDecoderLayer: memory has shape [1, 5, 8], expected [2, any, 8] ([B, Lm, E])");
    EXPECT_EQ(refused(without_memory(memory)), refusal([&] { decoder.forward(engine, x, without_memory(memory), y); }));
    EXPECT_EQ(refused_whole(decoder, [&] { decoder.backward(engine, narrow, memory, saved, narrow, narrow_gradient); }),
              "TransformerDecoderLayer: x has shape [2, 4, 6], expected [any, any, 8] ([B, L, E])");
  }
}

// A layer that another was assigned to is at the same address, and what was kept means something else to it, or ends
// before what it would read.
class AssignedOver : public testing::TestWithParam<Keeping> {
 protected:
  template <class Made>
  void between(Made layer, Made another, auto forward, auto backward) {
    for (Layer* made : {static_cast<Layer*>(&layer), static_cast<Layer*>(&another)}) {
      begin_training(*made);
    }
    forward(layer);
    layer = std::move(another);
    const std::string words = refused_whole(layer, [&] { backward(layer); });
    EXPECT_NE(words.find(": saved holds the forward pass of a layer that was here before"), std::string::npos) << words;
    EXPECT_TRUE(words.ends_with(": the layer has other options than it had then")) << words;
  }

  Engine engine_{{.threads = 1}};
  Tensor<float, 3> x_{{2, 5, 8}}, y_{{2, 5, 8}}, gradient_{{2, 5, 8}};
  SavedState saved_{GetParam().saved()};
};

TEST_P(AssignedOver, FeedForward) {
  between(
      FeedForward({.width = 8, .hidden_width = 8}), FeedForward({.width = 8, .hidden_width = 4096}),
      [&](const FeedForward& layer) { layer.forward(engine_, x_, y_, saved_, {}); },
      [&](FeedForward& layer) { layer.backward(engine_, x_, saved_, y_, gradient_); });
}

TEST_P(AssignedOver, MultiHeadAttention) {
  between(
      MultiHeadAttention({.width = 8, .heads = 2}),
      MultiHeadAttention({.width = 8, .heads = 8, .merge = Merge::gated_by_element}),
      [&](const MultiHeadAttention& layer) { layer.forward(engine_, x_, x_, x_, y_, saved_, {}); },
      [&](MultiHeadAttention& layer) { layer.backward(engine_, x_, x_, x_, saved_, y_, {.query = gradient_}); });
}

TEST_P(AssignedOver, TransformerEncoderLayer) {
  between(
      TransformerEncoderLayer({.width = 8, .heads = 2}),
      TransformerEncoderLayer({.width = 8, .heads = 2, .feed_forward_width = 4096}),
      [&](const TransformerEncoderLayer& layer) { layer.forward(engine_, x_, y_, saved_, {}); },
      [&](TransformerEncoderLayer& layer) { layer.backward(engine_, x_, saved_, y_, gradient_); });
}

TEST_P(AssignedOver, TransformerDecoderLayer) {
  const Tensor<float, 3> memory({2, 3, 8});
  between(
      TransformerDecoderLayer({.width = 8, .heads = 2}),
      TransformerDecoderLayer({.width = 8, .heads = 2, .feed_forward_width = 4096}),
      [&](const TransformerDecoderLayer& layer) { layer.forward(engine_, x_, memory, y_, saved_, {}); },
      [&](TransformerDecoderLayer& layer) { layer.backward(engine_, x_, memory, saved_, y_, gradient_); });
}

TEST_P(AssignedOver, Encoder) {
  const std::vector<std::int64_t> ids = {1, 2, 3, 4}, offsets = {0, 4};
  const EncoderInput input = {.ids = ids, .positions = ids, .offsets = offsets};
  Tensor<float, 2> hidden({4, 8});
  between(
      Encoder({.vocabulary = 8, .max_positions = 8, .width = 8, .heads = 2, .layers = 2}),
      Encoder({.vocabulary = 8, .max_positions = 8, .width = 8, .heads = 2, .layers = 40}),
      [&](const Encoder& encoder) { encoder.forward(engine_, input, hidden, saved_, {}); },
      [&](Encoder& encoder) { encoder.backward(engine_, input, saved_, hidden); });
}

// Options that lay out as many bytes, and compute something else.
TEST_P(AssignedOver, OptionsOfTheSameSize) {
  const auto forward = [&](const auto& layer) { layer.forward(engine_, x_, y_, saved_, {}); };
  const auto backward = [&](auto& layer) { layer.backward(engine_, x_, saved_, y_, gradient_); };
  between(FeedForward({.width = 8}), FeedForward({.width = 8, .activation = Activation::relu}), forward, backward);
  between(FeedForward({.width = 8}), FeedForward({.width = 8, .dropout = 0.25f}), forward, backward);
  using Block = TransformerEncoderLayer;
  between(Block({.width = 8, .heads = 2}), Block({.width = 8, .heads = 2, .norm = Norm::pre}), forward, backward);
  between(Block({.width = 8, .heads = 2}), Block({.width = 8, .heads = 2, .layer_norm_epsilon = 1e-3f}), forward,
          backward);
  between(
      MultiHeadAttention({.width = 8, .heads = 2}), MultiHeadAttention({.width = 8, .heads = 2, .dropout = 0.5f}),
      [&](const MultiHeadAttention& layer) { layer.forward(engine_, x_, x_, x_, y_, saved_, {}); },
      [&](MultiHeadAttention& layer) { layer.backward(engine_, x_, x_, x_, saved_, y_, {.query = gradient_}); });
}

// A width that is given is the same as the one that 0 stands for.
TEST_P(AssignedOver, TheSameOptionsAreTheSamePass) {
  TransformerEncoderLayer layer({.width = 8, .heads = 2}), another({.width = 8, .heads = 2, .feed_forward_width = 32});
  begin_training(layer);
  begin_training(another);
  layer.forward(engine_, x_, y_, saved_, {});
  layer = std::move(another);
  layer.backward(engine_, x_, saved_, y_, gradient_);
}

INSTANTIATE_TEST_SUITE_P(Of, AssignedOver, testing::ValuesIn(kKeepings));

TEST(SavedStateArguments, AreNamedWhenTheyAreWrong) {
  EXPECT_EQ(refusal([] { SavedState(static_cast<Checkpoint>(4)); }),
            "SavedState: checkpoint is 4, expected one of the enum");
}

}  // namespace headlight::test::saved_state_test
