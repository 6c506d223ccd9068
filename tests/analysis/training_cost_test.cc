// What training_bytes() foretells, against what encoders then hold.
#include "headlight/analysis/training_cost.h"

#include "gtest/gtest.h"
#include "headlight/optimizer.h"
#include "layers/encoder_twin.h"
#include "support/refusal.h"

namespace headlight::test {
namespace {

TEST(TrainingCost, IsWhatAnEncoderThenHolds) {
  Engine engine;
  Random random(1);
  const std::vector<std::int64_t> lengths = {13, 1, 40};
  for (const auto& [norm, merge] : {std::pair{Norm::post, Merge::concatenate},
                                    {Norm::pre, Merge::concatenate},
                                    {Norm::pre, Merge::average},
                                    {Norm::post, Merge::weighted},
                                    {Norm::pre, Merge::weighted_by_input},
                                    {Norm::post, Merge::gated_by_head},
                                    {Norm::pre, Merge::gated_by_element}}) {
    Encoder encoder({.vocabulary = 30,
                     .max_positions = 50,
                     .token_types = 2,
                     .width = 36,
                     .heads = 3,
                     .feed_forward_width = 70,
                     .layers = 5,
                     .norm = norm,
                     .merge = merge});
    encoder.initialize(1);
    encoder.set_training(true);
    AdamW adamw(encoder.parameters());
    const Tokens tokens(random, 30, lengths);
    Tensor<float, 2> hidden({tokens.count(), 36});
    for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input, Checkpoint::every_k_layers}) {
      const analysis::TrainingBytes bytes =
          analysis::training_bytes({.encoder = encoder.options(), .lengths = lengths, .checkpoint = checkpoint});
      SavedState saved(checkpoint);
      encoder.forward(engine, tokens.input(), hidden, saved, {});
      EXPECT_EQ(bytes.saved, static_cast<std::int64_t>(saved.bytes())) << static_cast<int>(checkpoint);
      EXPECT_EQ(bytes.computed_again == 0, checkpoint == Checkpoint::keep_linear);
      EXPECT_EQ(bytes.parameters, 4 * encoder.parameter_count());
      std::int64_t moments = 0;
      for (const Parameter& moment : adamw.state()) moments += 4 * static_cast<std::int64_t>(moment.values.size());
      EXPECT_EQ(bytes.optimizer, moments);
      encoder.backward(engine, tokens.input(), saved, hidden);
      EXPECT_LE(bytes.computed_again, static_cast<std::int64_t>(engine.scratch_bytes()));
    }
  }
}

// BERT-base on 8 sequences of 128: 3 · 2 · 85.0 million weights a token, and attention's 14 · L² · E a sequence.
TEST(TrainingCost, CountsOperations) {
  const std::vector<std::int64_t> lengths(8, 128);
  analysis::TrainingPlan plan = {
      .encoder = {.vocabulary = 30522, .max_positions = 512, .token_types = 2, .width = 768, .heads = 12, .layers = 12},
      .lengths = lengths};
  const analysis::TrainingFlops kept = analysis::training_flops(plan);
  EXPECT_EQ(kept.all(), 12 * (3.0 * 1024 * 2 * (4 * 768 * 768 + 2 * 768 * 3072) + 14.0 * 8 * 128 * 128 * 768));
  EXPECT_EQ(kept.again, 0);
  plan.checkpoint = Checkpoint::layer_input;
  EXPECT_EQ(analysis::training_flops(plan).again, kept.forward);
  plan.encoder.norm = Norm::pre;
  EXPECT_EQ(analysis::training_flops(plan).again, kept.forward - 12 * 1024.0 * 2 * 768 * 3072);
  plan.encoder.merge = Merge::average;  // W_up instead of W_O
  EXPECT_EQ(analysis::training_flops(plan).forward, kept.forward - 12 * 1024.0 * 2 * 768 * (768 - 64));
  EXPECT_EQ(refusal([&] { (void)analysis::training_flops({.encoder = {.width = 0}}); }),
            "training_cost: width is 0, expected at least 1");
}

}  // namespace
}  // namespace headlight::test
