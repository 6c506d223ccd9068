// The encoder: from tokens to hidden states, and what it promises.
#include "headlight/layers/encoder.h"

#include <algorithm>
#include <string_view>

#include "gtest/gtest.h"
#include "layers/encoder_twin.h"
#include "layers/twins.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::encoder_test {

using EncoderTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(EncoderTest);

EncoderOptions small(Norm norm) {
  return {.vocabulary = 50,
          .max_positions = 40,
          .token_types = 2,
          .width = 48,
          .heads = 4,
          .feed_forward_width = 100,
          .layers = 3,
          .norm = norm,
          .layer_norm_epsilon = 1e-5f};
}

TEST_P(EncoderTest, AgreesWithTheTwinSequenceBySequence) {
  Engine engine(options());
  Random random(1);
  for (const Norm norm : {Norm::post, Norm::pre}) {
    Encoder encoder(small(norm));
    randomize(encoder, random);
    const Tokens tokens(random, 50, {7, 1, 0, 33, 12});
    Tensor<float, 2> hidden({tokens.count(), 48});
    encoder.forward(engine, tokens.input(), hidden.view());
    for (std::size_t s = 0; s + 1 < tokens.offsets.size(); ++s) {
      const Tokens one = tokens.only(s);
      const View<float, 3> rows(hidden.data() + tokens.offsets[s] * 48, {1, one.count(), 48});
      const Tensor<double, 3> truth = encoder_twin<double>(encoder, one);
      const Tensor<float, 3> plain = encoder_twin<float>(encoder, one);
      EXPECT_TRUE(at_most_twice_the_plain_error(rows, plain.view(), truth.view())) << "sequence " << s;
    }
  }
}

// Threads, neighbours in the batch, the run: none of them changes a bit.
TEST_P(EncoderTest, GivesTheSameBitsOnAnyNumberOfThreadsAndAlone) {
  Random random(2);
  Encoder encoder({.vocabulary = 50, .max_positions = 200, .token_types = 2, .width = 96, .heads = 3, .layers = 2});
  randomize(encoder, random);
  const Tokens tokens(random, 50, {150, 3, 64, 129, 17});
  Tensor<float, 2> once({tokens.count(), 96});
  Engine one(options(1));
  encoder.forward(one, tokens.input(), once.view());
  for (const int threads : {1, 2, 3, 5, 8}) {
    Engine engine(options(threads));
    Tensor<float, 2> again({tokens.count(), 96});
    encoder.forward(engine, tokens.input(), again.view());
    EXPECT_TRUE(same_bits(again.view(), once.view())) << threads << " threads";
    for (std::size_t s = 0; s + 1 < tokens.offsets.size(); ++s) {
      const Tokens alone = tokens.only(s);
      Tensor<float, 2> hidden({alone.count(), 96});
      encoder.forward(engine, alone.input(), hidden.view());
      EXPECT_TRUE(same_bits(hidden.view(), View<float, 2>(once.data() + tokens.offsets[s] * 96, {alone.count(), 96})))
          << "sequence " << s << " alone, " << threads << " threads";
    }
  }
}

TEST_P(EncoderTest, AllocatesNothingOnTheSecondCallOrAfterReserve) {
  Random random(3);
  for (const Norm norm : {Norm::post, Norm::pre}) {
    for (const int threads : {1, 3}) {
      Encoder encoder(small(norm));
      randomize(encoder, random);
      const Tokens tokens(random, 50, {40, 3, 25});
      Tensor<float, 2> hidden({tokens.count(), 48});
      const EncoderInput input = tokens.input();
      const auto allocations = [&](Engine& engine) {
        const AllocationCounter counter;
        encoder.forward(engine, input, hidden.view());
        return counter.count();
      };
      Engine engine(options(threads));
      wait_for_workers(engine);
      (void)allocations(engine);
      EXPECT_EQ(allocations(engine), 0) << "second call, threads: " << threads;
      Engine reserved(options(threads));
      wait_for_workers(reserved);
      encoder.reserve(reserved, tokens.count());
      EXPECT_GE(reserved.scratch_bytes(), encoder.workspace_bytes(reserved, tokens.count()));
      EXPECT_EQ(allocations(reserved), 0) << "after reserve, threads: " << threads;
    }
  }
}

TEST_P(EncoderTest, WritesTheProbabilitiesOfChosenLayers) {
  Engine engine(options());
  Random random(4);
  Encoder encoder(small(Norm::post));
  randomize(encoder, random);
  const Tokens tokens(random, 50, {6, 9});
  Tensor<float, 4> first({1, 4, 15, 15});
  Tensor<float, 3> last({1, 1, 15});
  const std::vector<std::int64_t> rows = {8};
  const std::array<LayerProbabilities, 2> wanted = {
      LayerProbabilities{.layer = 0, .probabilities = {.per_head = first.view()}},
      LayerProbabilities{.layer = 2, .probabilities = {.averaged = last.view(), .rows = rows}}};
  Tensor<float, 2> hidden({15, 48});
  Tensor<float, 2> without({15, 48});
  encoder.forward(engine, tokens.input(), hidden.view(), wanted);
  encoder.forward(engine, tokens.input(), without.view());
  EXPECT_TRUE(same_bits(hidden.view(), without.view()));
  for (std::int64_t i = 0; i < 15; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < 15; ++j) {
      sum += first(0, 3, i, j);
      EXPECT_EQ(first(0, 3, i, j) != 0.0f, (i < 6) == (j < 6)) << i << ", " << j;
    }
    EXPECT_NEAR(sum, 1.0, 1e-6);
    EXPECT_EQ(last(0, 0, i) != 0.0f, i >= 6);
  }
}

// No layers, no heads: what it embeds is all it gives.
TEST(EncoderArguments, MayHaveNeitherLayersNorHeads) {
  Engine engine;
  const Encoder encoder({.vocabulary = 3, .max_positions = 2, .width = 4, .heads = 0, .layers = 0});
  const std::vector<std::int64_t> ids = {2, 0}, positions = {0, 1}, offsets = {0, 2};
  const EncoderInput input = {.ids = ids, .positions = positions, .offsets = offsets};
  Tensor<float, 2> hidden({2, 4});
  EXPECT_NO_THROW(encoder.forward(engine, input, hidden.view()));
  const std::vector<LayerProbabilities> asked(1);
  EXPECT_NE(refusal([&] { encoder.forward(engine, input, hidden.view(), asked); }), "");
}

TEST(EncoderArguments, AreNotFewerThanNoTokens) {
  Engine engine({.threads = 1});
  const Encoder encoder({.vocabulary = 3, .max_positions = 5, .width = 4, .layers = 1});
  const std::string_view expected = "Encoder: tokens is -1, expected at least 0";
  EXPECT_EQ(refusal([&] { static_cast<void>(encoder.workspace_bytes(engine, -1)); }), expected);
  EXPECT_EQ(refusal([&] { encoder.reserve(engine, -1); }), expected);
  EXPECT_EQ(refusal([&] { encoder.reserve(engine, 0); }), "");
}

TEST(EncoderArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Random random(5);
  const Encoder encoder(small(Norm::post));
  Tensor<float, 2> hidden({5, 48});
  const auto with = [&](auto change) {
    Tokens tokens(random, 50, {2, 3});
    EncoderInput input = tokens.input();
    change(tokens, input);
    return refusal([&] { encoder.forward(engine, input, hidden.view()); });
  };
  EXPECT_EQ(with([](Tokens&, EncoderInput&) {}), "");
  EXPECT_EQ(with([](Tokens& tokens, EncoderInput&) { tokens.ids[3] = 50; }),
            "embed: id 3 of table 0 is 50, expected 0 to 49");
  EXPECT_EQ(with([](Tokens& tokens, EncoderInput&) { tokens.positions[0] = -1; }),
            "embed: id 0 of table 1 is -1, expected 0 to 39");
  EXPECT_EQ(with([](Tokens&, EncoderInput& input) { input.positions = input.positions.first(4); }),
            "Encoder: positions has 4 entries, expected 5 (one for each id)");
  EXPECT_EQ(with([](Tokens&, EncoderInput& input) { input.token_types = {}; }),
            "Encoder: token_types has 0 entries, expected 5 (one for each id)");
  EXPECT_EQ(with([](Tokens&, EncoderInput& input) { input.offsets = {}; }),
            "Encoder: offsets is empty, expected [n + 1] entries from 0 to N");
  EXPECT_EQ(with([](Tokens& tokens, EncoderInput&) { tokens.offsets[2] = 6; }),
            "Encoder: offsets ends with 6, expected N = 5");
  EXPECT_EQ(refusal([] {
              Encoder({.vocabulary = 1, .max_positions = 1, .width = 4, .layers = 0, .norm = static_cast<Norm>(2)});
            }),
            "Encoder: norm is 2, expected one of the enum");
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  try {
    Encoder({.vocabulary = kHuge, .max_positions = 1, .width = kHuge});
    FAIL() << "it was not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(),
                 "Encoder with word_embeddings [1099511627776, 1099511627776]: 18446744073709551615 bytes of memory "
                 "cannot be had");
  }
  EXPECT_EQ(refusal([] { Encoder({.vocabulary = 1, .max_positions = 0, .width = 4}); }),
            "Encoder: max_positions is 0, expected at least 1");
}

}  // namespace headlight::test::encoder_test
