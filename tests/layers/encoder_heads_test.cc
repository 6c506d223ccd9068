// What the encoder tells of its heads: their outputs before W_O, their weights within a sequence, and itself without
// some of them.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/encoder.h"
#include "layers/encoder_twin.h"
#include "layers/twins.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::encoder_heads_test {

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

class EncoderHeadsArguments : public testing::Test {
 protected:
  EncoderHeadsArguments() { std::fill(hidden_.begin(), hidden_.end(), 7.0f); }

  // What the encoder says, and that nothing was written when it refused.
  std::string refused(std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) {
    const std::string message =
        refusal([&] { encoder_.forward(engine_, tokens_.input(), hidden_, probabilities, heads); });
    const bool untouched = std::all_of(hidden_.begin(), hidden_.end(), [](float h) { return h == 7.0f; });
    EXPECT_EQ(untouched, !message.empty()) << message;
    std::fill(hidden_.begin(), hidden_.end(), 7.0f);
    return message;
  }
  std::string refused(const LayerHeads& heads) { return refused({}, {&heads, 1}); }
  std::string refused(const LayerProbabilities& probabilities) { return refused({&probabilities, 1}, {}); }

  Random random_{5};
  Encoder encoder_ = make(random_);
  Tokens tokens_{random_, 50, {2, 3}};
  Engine engine_;
  Tensor<float, 2> hidden_{{5, kWidth}}, outputs_{{5, kWidth}}, other_{{5, kWidth}}, narrow_{{5, 47}};
  Tensor<float, 4> all_{{1, kHeads, 5, 5}}, own_{{1, kHeads, 5, 2}};
};

TEST_F(EncoderHeadsArguments, AreNamedWhenTheyAreWrong) {
  EXPECT_EQ(refused({.layer = 2, .outputs = outputs_}), "");
  EXPECT_EQ(refused({.layer = 3, .outputs = outputs_}), "Encoder: heads[0].layer is 3, expected 0 to 2");
  const std::array<std::int64_t, 2> beyond = {1, 4};
  EXPECT_EQ(refused({.layer = 1, .silenced = beyond}), "Encoder: heads[0].silenced[1] is 4, expected 0 to 3");
  EXPECT_EQ(refused({.layer = 1, .outputs = narrow_}),
            "Encoder: heads[0].outputs has shape [5, 47], expected [5, 48] ([N, H · D])");
  EXPECT_EQ(refused({.layer = 2, .scaled_outputs = outputs_}), "");
  EXPECT_EQ(refused({}, std::array{LayerHeads{.layer = 0}, LayerHeads{.layer = 2, .scaled_outputs = narrow_}}),
            "Encoder: heads[1].scaled_outputs has shape [5, 47], expected [5, 48] ([N, H · D])");
  EXPECT_EQ(refused(LayerProbabilities{.layer = -1}), "Encoder: probabilities[0].layer is -1, expected 0 to 2");
  EXPECT_EQ(refused({.layer = 1, .probabilities = {.per_head = own_, .own_keys = true}}),
            "Encoder: probabilities[0].probabilities.per_head has shape [1, 4, 5, 2], expected [1, 4, 5, 3] "
            "([B, Hq, R, longest sequence])");
  const std::array<std::int64_t, 1> row = {99};
  EXPECT_EQ(refused({.layer = 1, .probabilities = {.per_head = all_, .rows = row}}),
            "Encoder: probabilities[0].probabilities.rows[0] is 99, expected 0 to Lq − 1 = 4");
}

TEST_F(EncoderHeadsArguments, LieApartFromHiddenAndFromEachOther) {
  const View<float, 3> averaged(hidden_.data(), {1, 5, 5});
  EXPECT_EQ(refused({.layer = 1, .probabilities = {.averaged = averaged}}),
            "Encoder: probabilities[0].probabilities.averaged overlaps hidden in memory");
  EXPECT_EQ(refused({.layer = 0, .outputs = hidden_}), "Encoder: heads[0].outputs overlaps hidden in memory");
  EXPECT_EQ(refused({.layer = 0, .outputs = outputs_, .scaled_outputs = outputs_}),
            "Encoder: heads[0].scaled_outputs overlaps heads[0].outputs in memory");
  const View<float, 4> over_outputs(outputs_.data(), {1, kHeads, 5, 5});
  EXPECT_EQ(refused(std::array{LayerProbabilities{.layer = 0, .probabilities = {.per_head = over_outputs}}},
                    std::array{LayerHeads{.layer = 0}, LayerHeads{.layer = 1, .outputs = outputs_}}),
            "Encoder: heads[1].outputs overlaps probabilities[0].probabilities.per_head in memory");
  EXPECT_EQ(refused({}, std::array{LayerHeads{.layer = 0, .outputs = outputs_},
                                   LayerHeads{.layer = 1, .outputs = other_, .scaled_outputs = outputs_}}),
            "Encoder: heads[1].scaled_outputs overlaps heads[0].outputs in memory");
}

// Tokens, offsets, rows and heads are checked once and then trusted: nothing is written over them.
TEST_F(EncoderHeadsArguments, LieApartFromListsOfNumbers) {
  std::vector<std::int64_t> memory(5 * kWidth);
  const auto over = [&](std::int64_t first) {
    return View<float, 2>(reinterpret_cast<float*>(memory.data() + first), {5, kWidth});
  };
  const std::span<const std::int64_t> zeros = std::span(memory).first(5);
  const auto says = [&](const EncoderInput& input, const View<float, 2>& hidden, const LayerHeads& heads) {
    return refusal([&] { encoder_.forward(engine_, input, hidden, {}, {&heads, 1}); });
  };
  EncoderInput input = tokens_.input();
  input.ids = zeros;
  EXPECT_EQ(says(input, over(4), {}), "Encoder: hidden overlaps ids in memory");
  EXPECT_EQ(says(input, hidden_, {.outputs = over(4)}), "Encoder: heads[0].outputs overlaps ids in memory");
  input = tokens_.input();
  input.positions = zeros;
  EXPECT_EQ(says(input, over(4), {}), "Encoder: hidden overlaps positions in memory");
  input = tokens_.input();
  input.token_types = zeros;
  EXPECT_EQ(says(input, over(4), {}), "Encoder: hidden overlaps token_types in memory");
  const std::span<const std::int64_t> one = zeros.first(1);
  EXPECT_EQ(says(tokens_.input(), over(0), {.silenced = one}), "Encoder: hidden overlaps heads[0].silenced in memory");
  EXPECT_EQ(says(tokens_.input(), hidden_, {.silenced = one, .scaled_outputs = over(0)}),
            "Encoder: heads[0].scaled_outputs overlaps heads[0].silenced in memory");
  memory[1] = 5;
  input = tokens_.input();
  input.offsets = zeros.first(2);
  EXPECT_EQ(says(input, over(1), {}), "Encoder: hidden overlaps offsets in memory");
  memory[1] = 0;
  const View<float, 4> of_row(all_.data(), {1, kHeads, 1, 5});
  const LayerProbabilities asked = {.probabilities = {.per_head = of_row, .rows = one}};
  EXPECT_EQ(refusal([&] {
              encoder_.forward(engine_, tokens_.input(), over(0), {&asked, 1}, {});
            }),
            "Encoder: hidden overlaps probabilities[0].probabilities.rows in memory");
}

TEST_F(EncoderHeadsArguments, NameALayerOnce) {
  const std::array<std::int64_t, 1> silenced = {1};
  EXPECT_EQ(refused({}, std::array{LayerHeads{.layer = 2, .silenced = silenced}, LayerHeads{.layer = 0},
                                   LayerHeads{.layer = 2, .outputs = outputs_}}),
            "Encoder: heads[2].layer is 2 as heads[0].layer is, expected each layer once");
  EXPECT_EQ(refused(std::array{LayerProbabilities{.layer = 1}, LayerProbabilities{.layer = 1}}, {}),
            "Encoder: probabilities[1].layer is 1 as probabilities[0].layer is, expected each layer once");
  EXPECT_EQ(refused(std::array{LayerProbabilities{.layer = 1, .probabilities = {.per_head = all_}}},
                    std::array{LayerHeads{.layer = 1, .outputs = outputs_}, LayerHeads{.layer = 0}}),
            "");
}

}  // namespace headlight::test::encoder_heads_test
