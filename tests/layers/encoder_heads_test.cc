// What the encoder tells of its heads: their outputs before W_O, their weights within a sequence, and itself without
// some of them.
#include <algorithm>
#include <array>

#include "gtest/gtest.h"
#include "headlight/layers/encoder.h"
#include "layers/encoder_twin.h"
#include "layers/twins.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test {
namespace {

using EncoderHeadsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(EncoderHeadsTest);

constexpr std::int64_t kWidth = 48, kHeads = 4, kHeadDim = 12;

Encoder make(Random& random, Merge merge = Merge::concatenate) {
  Encoder encoder({.vocabulary = 50,
                   .max_positions = 40,
                   .token_types = 2,
                   .width = kWidth,
                   .heads = kHeads,
                   .layers = 3,
                   .merge = merge});
  randomize(encoder, random);
  return encoder;
}

std::span<float> parameter(Encoder& encoder, const std::string& name) {
  const std::vector<Parameter> all = encoder.parameters();
  return std::find_if(all.begin(), all.end(), [&](const Parameter& one) { return one.name == name; })->values;
}

TEST_P(EncoderHeadsTest, TheirOutputsCostThePlainPathNoBit) {
  Random random(1);
  const Encoder encoder = make(random);
  const Tokens tokens(random, 50, {7, 1, 0, 33, 12});
  const std::int64_t count = tokens.count();
  Engine engine(options(2));
  Tensor<float, 2> without({count, kWidth}), with({count, kWidth});
  Tensor<float, 2> first({count, kWidth}), last({count, kWidth + 3});
  const View<float, 2> wider(last.data(), {count, kWidth}, {kWidth + 3, 1});
  encoder.forward(engine, tokens.input(), without.view());
  encoder.forward(engine, tokens.input(), with.view(), {},
                  std::array{LayerHeads{.layer = 0, .outputs = first}, LayerHeads{.layer = 2, .outputs = wider}});
  EXPECT_TRUE(same_bits(with.view(), without.view()));
  EXPECT_NE(first(count - 1, 0), 0.0f);
  EXPECT_NE(wider(count - 1, 0), first(count - 1, 0));
  for (std::int64_t n = 0; n < count; ++n) EXPECT_EQ(last(n, kWidth), 0.0f) << "behind the end of row " << n;
}

// Without head h the layer is the one whose W_O has nothing in the columns of head h.
TEST_P(EncoderHeadsTest, ASilencedHeadIsOneThatTheOutputProjectionDoesNotRead) {
  Random random(2);
  Encoder encoder = make(random);
  const Tokens tokens(random, 50, {9, 20});
  const std::int64_t count = tokens.count();
  Engine engine(options(2));
  Tensor<float, 2> silenced({count, kWidth}), pruned({count, kWidth}), outputs({count, kWidth});
  const std::array<std::int64_t, 2> heads = {3, 0};
  encoder.forward(engine, tokens.input(), silenced.view(), {},
                  std::array{LayerHeads{.layer = 1, .outputs = outputs, .silenced = heads}});
  const std::span<float> projection = parameter(encoder, "layers.1.self_attn.out_proj.weight");
  for (const std::int64_t head : heads) {
    for (std::int64_t row = 0; row < kWidth; ++row) {
      std::fill_n(&projection[static_cast<std::size_t>(row * kWidth + head * kHeadDim)], kHeadDim, 0.0f);
    }
  }
  encoder.forward(engine, tokens.input(), pruned.view());
  EXPECT_TRUE(same_bits(silenced.view(), pruned.view()));
  for (std::int64_t n = 0; n < count; ++n) {
    EXPECT_EQ(outputs(n, 0), 0.0f);
    EXPECT_NE(outputs(n, kHeadDim), 0.0f);
    EXPECT_EQ(outputs(n, 3 * kHeadDim), 0.0f);
  }
}

TEST_P(EncoderHeadsTest, WeightsWithinASequenceAreThoseAmongAllKeys) {
  Random random(3);
  const Encoder encoder = make(random);
  const Tokens tokens(random, 50, {6, 0, 40, 1, 17});
  const std::int64_t count = tokens.count(), longest = 40;
  Engine engine(options(2));
  Tensor<float, 4> all({1, kHeads, count, count}), own({1, kHeads, count, longest});
  std::fill(own.begin(), own.end(), 1e30f);
  Tensor<float, 2> hidden({count, kWidth}), again({count, kWidth});
  encoder.forward(engine, tokens.input(), hidden.view(),
                  std::array{LayerProbabilities{.layer = 1, .probabilities = {.per_head = all}}});
  encoder.forward(engine, tokens.input(), again.view(),
                  std::array{LayerProbabilities{.layer = 1, .probabilities = {.per_head = own, .own_keys = true}}});
  EXPECT_TRUE(same_bits(hidden.view(), again.view()));
  for (std::size_t s = 0; s + 1 < tokens.offsets.size(); ++s) {
    const std::int64_t begin = tokens.offsets[s], length = tokens.offsets[s + 1] - begin;
    for (std::int64_t i = begin; i < begin + length; ++i) {
      for (std::int64_t j = 0; j < longest; ++j) {
        EXPECT_EQ(own(0, 2, i, j), j < length ? all(0, 2, i, begin + j) : 0.0f) << i << ", " << j;
      }
    }
  }
}

TEST_P(EncoderHeadsTest, AskingAllocatesNothingTheSecondTime) {
  for (int number = 0; number < 6; ++number) {
    Random random(4);
    const Encoder encoder = make(random, static_cast<Merge>(number));
    const Tokens tokens(random, 50, {12, 30});
    Engine engine(options(3));
    wait_for_workers(engine);
    Tensor<float, 2> hidden({tokens.count(), kWidth}), outputs(hidden.shape()), scaled(hidden.shape());
    Tensor<float, 4> own({1, kHeads, tokens.count(), 30});
    const std::array<std::int64_t, 1> silenced = {2};
    const std::array probabilities{
        LayerProbabilities{.layer = 1, .probabilities = {.per_head = own, .own_keys = true}}};
    const std::array heads{LayerHeads{.layer = 1, .outputs = outputs, .silenced = silenced, .scaled_outputs = scaled}};
    const EncoderInput input = tokens.input();
    encoder.forward(engine, input, hidden.view(), probabilities, heads);
    const AllocationCounter counter;
    encoder.forward(engine, input, hidden.view(), probabilities, heads);
    EXPECT_EQ(counter.count(), 0) << name(static_cast<Merge>(number));
  }
}

TEST(EncoderHeadsArguments, AreNamedWhenTheyAreWrong) {
  Random random(5);
  const Encoder encoder = make(random);
  const Tokens tokens(random, 50, {2, 3});
  Engine engine;
  Tensor<float, 2> hidden({5, kWidth}), outputs({5, kWidth}), narrow({5, 47});
  const auto refused = [&](const LayerHeads& heads) {
    return refusal([&] { encoder.forward(engine, tokens.input(), hidden.view(), {}, {&heads, 1}); });
  };
  EXPECT_EQ(refused({.layer = 2, .outputs = outputs}), "");
  EXPECT_EQ(refused({.layer = 3, .outputs = outputs}), "Encoder: heads are asked of layer 3, expected 0 to 2");
  const std::array<std::int64_t, 2> beyond = {1, 4};
  EXPECT_EQ(refused({.layer = 0, .silenced = beyond}), "MultiHeadAttention: head 4 is to be silenced, expected 0 to 3");
  EXPECT_NE(refused({.layer = 0, .outputs = narrow}).find("heads.outputs has shape [1, 5, 47]"), std::string::npos);
  EXPECT_NE(refused({.layer = 0, .outputs = hidden}).find("heads.outputs"), std::string::npos);
  EXPECT_EQ(refused({.layer = 2, .scaled_outputs = outputs}), "");
  EXPECT_NE(refused({.layer = 0, .scaled_outputs = narrow}).find("heads.scaled_outputs has shape [1, 5, 47]"),
            std::string::npos);
  EXPECT_NE(refused({.layer = 0, .outputs = outputs, .scaled_outputs = outputs}).find("heads.scaled_outputs"),
            std::string::npos);
  Tensor<float, 4> own({1, kHeads, 5, 2});
  const LayerProbabilities wanted{.layer = 0, .probabilities = {.per_head = own, .own_keys = true}};
  EXPECT_NE(refusal([&] {
              encoder.forward(engine, tokens.input(), hidden.view(), {&wanted, 1});
            }).find("expected [1, 4, 5, 3] ([B, Hq, R, longest sequence])"),
            std::string::npos);
}

}  // namespace
}  // namespace headlight::test
