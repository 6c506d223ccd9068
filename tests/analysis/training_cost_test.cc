// What training_bytes() foretells, against what encoders then hold.
#include "headlight/analysis/training_cost.h"

#include <malloc.h>

#include <cmath>

#include "gtest/gtest.h"
#include "headlight/optimizer.h"
#include "layers/encoder_twin.h"
#include "support/keepings.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/sanitizer.h"

namespace headlight::test::training_cost_test {

using analysis::TrainingBytes;

// Sanitizers bring an allocator of their own.
const bool kCounts = !under_sanitizer();

std::int64_t allocated() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

// Blocks in mappings of their own are counted in whole pages, a percent of small layers; in the heap, in bytes. So the
// heap is to hold all but the largest.
void count_in_bytes() { ASSERT_EQ(::mallopt(M_MMAP_THRESHOLD, 32 << 20), 1); }

// Of what is foretold: how far the allocator's count is from it, in percent.
double percent_off(std::int64_t held, const TrainingBytes& foretold) {
  const auto all = static_cast<double>(foretold.all());
  return 100 * std::abs(static_cast<double>(held) - all) / all;
}

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
    for (const Keeping& keeping : kKeepings) {
      const analysis::TrainingBytes bytes = analysis::training_bytes(engine, {.encoder = encoder.options(),
                                                                              .lengths = lengths,
                                                                              .checkpoint = keeping.checkpoint,
                                                                              .attention = keeping.method()});
      SavedState saved = keeping.saved();
      engine.release_scratch();
      for (int step = 0; step < 2; ++step) {
        encoder.forward(engine, tokens.input(), hidden, saved, {});
        encoder.backward(engine, tokens.input(), saved, hidden);
      }
      EXPECT_EQ(bytes.saved, static_cast<std::int64_t>(saved.bytes())) << keeping;
      EXPECT_EQ(bytes.scratch, static_cast<std::int64_t>(engine.scratch_bytes())) << keeping;
      EXPECT_EQ(bytes.computed_again == 0, keeping.checkpoint == Checkpoint::keep_linear);
      EXPECT_LE(bytes.computed_again, bytes.scratch);
      EXPECT_EQ(bytes.parameters, 4 * encoder.parameter_count());
      std::int64_t moments = 0;
      for (const Parameter& moment : adamw.state()) moments += 4 * static_cast<std::int64_t>(moment.values.size());
      EXPECT_EQ(bytes.optimizer, moments);
    }
  }
}

// Bytes that the allocator gave out for a layer that learns, while all of it is held.
std::int64_t held_by(Engine& engine, const analysis::LayerTrainingPlan& plan) {
  Tensor<float, 3> x({plan.batch, plan.length, plan.layer.width}), y(x.shape()), gradient(x.shape());
  const std::int64_t before = allocated();
  TransformerEncoderLayer layer(plan.layer);
  layer.initialize(1);
  layer.set_training(true);
  AdamW adamw(layer.parameters());
  SavedState saved = Keeping::of(plan).saved();
  for (int step = 0; step < 2; ++step) {
    layer.forward(engine, x, y, saved, {});
    layer.backward(engine, x, saved, y, gradient);
    adamw.step(engine, {});
  }
  return allocated() - before;
}

TEST(TrainingCost, IsWhatTheAllocatorCountsOfALayer) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's allocator";
  count_in_bytes();
  double most = 0;
  for (const int threads : {1, 2}) {
    for (const Norm norm : {Norm::post, Norm::pre}) {
      for (const Keeping& keeping : kKeepings) {
        for (const std::int64_t length : {9, 64, 300, count(1000, 400)}) {
          const analysis::LayerTrainingPlan plan = {
              .layer = {.width = 128, .heads = 4, .norm = norm, .dropout = length == 300 ? 0.0f : 0.1f},
              .batch = length < 100 ? 8 : 1,
              .length = length,
              .checkpoint = keeping.checkpoint,
              .attention = keeping.method()};
          Engine engine({.threads = threads});
          const TrainingBytes foretold = analysis::training_bytes(engine, plan);
          const std::int64_t held = held_by(engine, plan);
          EXPECT_EQ(foretold.scratch, static_cast<std::int64_t>(engine.scratch_bytes()));
          EXPECT_LE(percent_off(held, foretold), 1)
              << threads << " threads, norm " << static_cast<int>(norm) << ", " << keeping << ", length " << length
              << ": " << held << ", " << foretold.all();
          most = std::max(most, percent_off(held, foretold));
        }
      }
    }
  }
  RecordProperty("most_percent_off", std::to_string(most));
}

std::int64_t held_by(Engine& engine, const analysis::TrainingPlan& plan, const Tokens& tokens) {
  Tensor<float, 2> hidden({tokens.count(), plan.encoder.width});
  const std::int64_t before = allocated();
  Encoder encoder(plan.encoder);
  encoder.initialize(1);
  encoder.set_training(true);
  AdamW adamw(encoder.parameters());
  SavedState saved = Keeping::of(plan).saved(plan.k);
  for (int step = 0; step < 2; ++step) {
    encoder.forward(engine, tokens.input(), hidden, saved, {});
    encoder.backward(engine, tokens.input(), saved, hidden);
    adamw.step(engine, {});
  }
  return allocated() - before;
}

TEST(TrainingCost, FULL_IsWhatTheAllocatorCountsOfAnEncoder) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's allocator";
  count_in_bytes();
  double most = 0;
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{5, 12, 3}, {128, 40, 77}, {count(900, 300)}}) {
    Random random(1);
    const Tokens tokens(random, 200, lengths);
    for (const int threads : {1, 2}) {
      for (const Norm norm : {Norm::post, Norm::pre}) {
        for (const Keeping& keeping : kKeepings) {
          const analysis::TrainingPlan plan = {.encoder = {.vocabulary = 200,
                                                           .max_positions = 1000,
                                                           .token_types = 2,
                                                           .width = 96,
                                                           .heads = 3,
                                                           .layers = 5,
                                                           .norm = norm},
                                               .lengths = lengths,
                                               .checkpoint = keeping.checkpoint,
                                               .k = 3,
                                               .attention = keeping.method()};
          Engine engine({.threads = threads});
          const TrainingBytes foretold = analysis::training_bytes(engine, plan);
          const std::int64_t held = held_by(engine, plan, tokens);
          EXPECT_EQ(foretold.scratch, static_cast<std::int64_t>(engine.scratch_bytes()));
          EXPECT_LE(percent_off(held, foretold), 1)
              << threads << " threads, norm " << static_cast<int>(norm) << ", " << keeping << ", " << tokens.count()
              << " tokens: " << held << ", " << foretold.all();
          most = std::max(most, percent_off(held, foretold));
        }
      }
    }
  }
  RecordProperty("most_percent_off", std::to_string(most));
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
  plan.checkpoint = Checkpoint::keep_linear;
  plan.attention = analysis::AttentionMethod::unfused;  // S is not made again
  EXPECT_EQ(analysis::training_flops(plan).all(), kept.all() - 12 * 2.0 * 8 * 128 * 128 * 768);
  EXPECT_EQ(12 * analysis::training_flops({.layer = {.width = 768, .heads = 12}, .batch = 8, .length = 128}).all(),
            kept.all());
  plan.attention = analysis::AttentionMethod::recomputing;
  plan.checkpoint = Checkpoint::layer_input;
  plan.encoder.norm = Norm::pre;
  EXPECT_EQ(analysis::training_flops(plan).again, kept.forward - 12 * 1024.0 * 2 * 768 * 3072);
  plan.encoder.merge = Merge::average;  // W_up instead of W_O
  EXPECT_EQ(analysis::training_flops(plan).forward, kept.forward - 12 * 1024.0 * 2 * 768 * (768 - 64));
}

TEST(TrainingCost, RefusesWhatMakesNoSense) {
  const Engine engine({.threads = 1});
  EXPECT_EQ(refusal([&] { (void)analysis::training_flops({.layer = {.width = 0}, .length = 1}); }),
            "training_cost: width is 0, expected 1 to 1048575");
  EXPECT_EQ(refusal([&] { (void)analysis::training_bytes(engine, {.layer = {.width = 8, .heads = 2}, .length = -1}); }),
            "training_cost: a length is -1, expected at least 0");
  EXPECT_EQ(refusal([&] {
              (void)analysis::training_bytes(
                  engine, {.layer = {.width = 8, .heads = 2}, .batch = INT64_MAX, .length = INT64_MAX});
            }),
            "training_cost: the step takes more than 10¹⁴ bytes");
  EXPECT_EQ(analysis::training_bytes(engine, {.layer = {.width = 8, .heads = 2}}).scratch, 0);
}

// Whose sums and products leave 63 bits, whichever of them is the large one.
TEST(TrainingCost, RefusesSizesOfAnyMagnitude) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  constexpr const char* kTooMany = "training_cost: the step takes more than 10¹⁴ bytes";
  const Engine engine({.threads = 1});
  const auto of_encoder = [&](auto change) {
    const std::array<std::int64_t, 2> huge = {kHuge, kHuge};
    analysis::TrainingPlan plan = {
        .encoder = {.vocabulary = 10, .max_positions = 10, .width = 12, .heads = 3, .layers = 1}};
    change(plan, huge);
    const std::string bytes = refusal([&] { (void)analysis::training_bytes(engine, plan); });
    EXPECT_EQ(refusal([&] { (void)analysis::training_flops(plan); }), bytes);
    return bytes;
  };
  using Plan = analysis::TrainingPlan;
  using Lengths = std::span<const std::int64_t>;
  EXPECT_EQ(of_encoder([](Plan&, Lengths) {}), "");
  EXPECT_EQ(of_encoder([](Plan& plan, Lengths) { plan.encoder.vocabulary = plan.encoder.max_positions = kHuge; }),
            kTooMany);
  EXPECT_EQ(of_encoder([](Plan& plan, Lengths) { plan.encoder.token_types = INT64_MAX; }), kTooMany);
  EXPECT_EQ(of_encoder([](Plan& plan, Lengths) { plan.encoder.layers = kHuge; }), kTooMany);
  EXPECT_EQ(of_encoder([](Plan& plan, Lengths) { plan.moments = kHuge; }), kTooMany);
  EXPECT_EQ(of_encoder([](Plan& plan, Lengths huge) { plan.lengths = huge; }), kTooMany);
  EXPECT_EQ(of_encoder([](Plan& plan, Lengths huge) {
              plan.lengths = huge;
              plan.encoder.layers = 0;
            }),
            kTooMany);
  EXPECT_EQ(of_encoder([](Plan& plan, Lengths) { plan.encoder.width = kHuge; }),
            "training_cost: width is 4611686018427387904, expected 1 to 1048575");
  EXPECT_EQ(of_encoder([](Plan& plan, Lengths) { plan.encoder.heads = 5; }),
            "training_cost: heads is 5, expected a divisor of width, which is 12");
  EXPECT_EQ(of_encoder([](Plan& plan, Lengths) { plan.encoder.feed_forward_width = kHuge; }),
            "training_cost: feed_forward_width is 4611686018427387904, expected 0 to 4194300");
  // Without a token no number of sequences takes anything.
  EXPECT_EQ(
      analysis::training_bytes(engine, {.layer = {.width = 12, .heads = 3, .merge = Merge::average}, .batch = kHuge})
          .saved,
      0);
}

}  // namespace headlight::test::training_cost_test
