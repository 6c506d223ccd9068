// What training_bytes() and training_flops() foretell of networks: the figures of an encoder where they describe one,
// and what networks then hold.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/analysis/training_cost.h"
#include "layers/encoder_specification.h"
#include "layers/network_case.h"
#include "support/keepings.h"
#include "support/refusal.h"

namespace headlight::test::network_cost_test {

using analysis::NetworkTrainingPlan;
using analysis::TrainingBytes;
using analysis::TrainingFlops;

const std::vector<std::int64_t> kLengths = {13, 1, 40};

TEST(NetworkCost, OfAnEncodersNetworkIsTheEncoders) {
  const Engine engine({.threads = 2});
  for (const Norm norm : {Norm::post, Norm::pre}) {
    for (int merge = 0; merge < 6; ++merge) {
      for (const Keeping& keeping : kKeepings) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(norm) << ", merge " << merge << ", " << keeping);
        const analysis::TrainingPlan of_encoder = {.encoder = {.vocabulary = 30,
                                                               .max_positions = 50,
                                                               .token_types = 2,
                                                               .width = 36,
                                                               .heads = 3,
                                                               .feed_forward_width = 70,
                                                               .layers = 5,
                                                               .norm = norm,
                                                               .merge = static_cast<Merge>(merge)},
                                                   .lengths = kLengths,
                                                   .checkpoint = keeping.checkpoint,
                                                   .attention = keeping.method()};
        const NetworkTrainingPlan of_network = {.network = specification(of_encoder.encoder),
                                                .lengths = kLengths,
                                                .checkpoint = keeping.checkpoint,
                                                .attention = keeping.method()};
        const TrainingFlops expected = training_flops(of_encoder), flops = training_flops(of_network);
        EXPECT_DOUBLE_EQ(flops.forward, expected.forward);
        EXPECT_DOUBLE_EQ(flops.backward, expected.backward);
        EXPECT_DOUBLE_EQ(flops.again, expected.again);
        const TrainingBytes of = training_bytes(engine, of_encoder), bytes = training_bytes(engine, of_network);
        EXPECT_EQ(bytes.parameters, of.parameters);
        EXPECT_EQ(bytes.gradients, of.gradients);
        EXPECT_EQ(bytes.optimizer, of.optimizer);
      }
    }
  }
}

// What two steps of training hold, against what is foretold of them.
void expect_foretold(const NetworkSpec& spec, const Keeping& keeping, std::int64_t k, int threads,
                     const std::vector<std::int64_t>& lengths, double scratch_off) {
  Engine engine({.threads = threads});
  Random random(2);
  Network network(spec);
  randomize(network, random);
  network.set_training(true);
  const NetworkTrainingPlan plan = {.network = spec,
                                    .lengths = lengths,
                                    .checkpoint = keeping.checkpoint,
                                    .k = k,
                                    .moments = 1,
                                    .attention = keeping.method()};
  const TrainingBytes foretold = training_bytes(engine, plan);
  std::int64_t numbers = 0;
  for (const Parameter& parameter : network.parameters()) {
    numbers += static_cast<std::int64_t>(parameter.values.size());
  }
  for (const std::int64_t bytes : {foretold.parameters, foretold.gradients, foretold.optimizer}) {
    EXPECT_EQ(bytes, 4 * numbers);
  }
  SavedState saved = keeping.saved(k);
  const Tokens tokens(random, 20, lengths);
  const Tensor<float, 2> by = random.uniform_tensor<2>({tokens.count(), spec.width});
  Tensor<float, 2> hidden(by.shape());
  for (int step = 0; step < 2; ++step) {
    network.forward(engine, tokens.input(), hidden.view(), saved);
    network.backward(engine, tokens.input(), saved, by.view());
  }
  EXPECT_EQ(foretold.saved, static_cast<std::int64_t>(saved.bytes()));
  EXPECT_NEAR(static_cast<double>(foretold.scratch), static_cast<double>(engine.scratch_bytes()), scratch_off);
}

TEST(NetworkCost, IsWhatANetworkThenHolds) {
  Random random(1);
  for (int n = 0; n < 60; ++n) {
    NetworkSpec spec = draw_network(random);
    if (n % 2 == 0) spec.dropout = 0.2f;
    const Keeping& keeping = kKeepings[n % 4];
    for (BlockSpec& block : spec.blocks) {
      if (!keeping.unfused) continue;  // which has neither
      block.attention.sinks = false;
      block.attention.key_value_heads = block.attention.heads;
    }
    SCOPED_TRACE(testing::Message() << "specification " << n << ", " << keeping);
    expect_foretold(spec, keeping, n % 5, 1 + n % 3, kLengths, 64 * 1024);
  }
}

// Of blocks as models have them, wider than they are many.
TEST(NetworkCost, IsWhatALargerNetworkThenHolds) {
  NetworkSpec spec;
  spec.width = 96;
  spec.embedding.vocabulary = 20;
  BlockSpec block;
  block.attention = {.heads = 6, .key_value_heads = 2, .head_dim = 24, .rotary = {.dims = 24}, .causal = true};
  block.attention.query_norm = block.attention.key_norm = {.kind = NormKind::rms};
  block.attention_residual.before = block.feed_forward_residual.before = {.kind = NormKind::rms};
  block.feed_forward = {.hidden_width = 300, .activation = Activation::silu, .gated = true};
  for (const Merge merge : {Merge::concatenate, Merge::gated_by_element, Merge::weighted_by_input}) {
    block.attention.merge = merge;
    spec.blocks = {block, block, block};
    for (const Keeping& keeping : kKeepings) {
      if (keeping.unfused) continue;
      SCOPED_TRACE(testing::Message() << name(merge) << ", " << keeping);
      expect_foretold(spec, keeping, 2, 2, {300, 170}, 64 * 1024);
    }
  }
}

// 2 · in · out of every product and 4 · D of every pair and head; three times as much on the way back, but for
// attention.
TEST(NetworkCost, CountsWhatTokensSee) {
  NetworkSpec spec;
  spec.width = 8;
  spec.embedding.vocabulary = 5;
  spec.blocks.resize(1);
  AttentionSpec& attention = spec.blocks[0].attention;
  attention = {.heads = 4, .key_value_heads = 2, .head_dim = 3};
  spec.blocks[0].feed_forward = {.hidden_width = 11, .gated = true};
  const double of_token = 2 * (8 * (12 + 6 + 6) + 12 * 8 + 8 * 22 + 11 * 8);
  const std::vector<std::int64_t> lengths = {4, 7};
  const auto expect = [&](double pairs, analysis::AttentionMethod method = analysis::AttentionMethod::recomputing) {
    const TrainingFlops flops = training_flops(NetworkTrainingPlan{
        .network = spec, .lengths = lengths, .checkpoint = Checkpoint::layer_input, .attention = method});
    const bool is_unfused = method == analysis::AttentionMethod::unfused;
    EXPECT_DOUBLE_EQ(flops.forward, 11 * of_token + 4 * pairs * 12);
    EXPECT_DOUBLE_EQ(flops.backward, 2 * 11 * of_token + (is_unfused ? 8 : 10) * pairs * 12);
    // The last product is not made again, for its output is the block's.
    EXPECT_DOUBLE_EQ(flops.again, flops.forward - 11 * 2 * 11 * 8);
  };
  expect(16 + 49);
  // The gradient of a relative bias has scores and their gradients once more.
  attention.relative_bias.buckets = 4;
  EXPECT_DOUBLE_EQ(training_flops(NetworkTrainingPlan{.network = spec, .lengths = lengths}).backward,
                   2 * 11 * of_token + 14 * (16 + 49) * 12);
  attention.relative_bias = {};
  attention.causal = true;
  expect(10 + 28);
  attention.window_before = 1;
  expect(7 + 13);
  attention.causal = false;
  attention.window_after = 1;
  expect(10 + 19);
  expect(16 + 49, analysis::AttentionMethod::unfused);
}

// Tokens counted one by one.
double counted_pairs(std::int64_t length, std::int64_t before, std::int64_t after) {
  double pairs = 0;
  for (std::int64_t token = 0; token < length; ++token) {
    for (std::int64_t seen = 0; seen < length; ++seen) {
      pairs += (before < 0 || token - seen <= before) && (after < 0 || seen - token <= after) ? 1 : 0;
    }
  }
  return pairs;
}

TEST(NetworkCost, CountsPairsOfAnyWindowAndLength) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  NetworkSpec spec;
  spec.width = 1;
  spec.embedding.vocabulary = 1;
  spec.blocks.resize(1);
  spec.blocks[0].feed_forward.hidden_width = 1;
  AttentionSpec& attention = spec.blocks[0].attention;
  // What the attention adds to three times the products, over 10 − 2 · 4.
  const auto pairs = [&](std::int64_t length) {
    const std::vector<std::int64_t> lengths = {length};
    const TrainingFlops flops = training_flops(NetworkTrainingPlan{.network = spec, .lengths = lengths});
    return (flops.backward - 2 * flops.forward) / 2;
  };
  const std::vector<std::int64_t> windows = {-1, 0, 1, 3, 6, 7, 8, 100, kLargest};
  for (const bool causal : {false, true}) {
    for (const std::int64_t before : windows) {
      for (const std::int64_t after : windows) {
        if (causal && after > 0) continue;
        attention.causal = causal;
        attention.window_before = before;
        attention.window_after = after;
        for (std::int64_t length = 0; length < 9; ++length) {
          EXPECT_DOUBLE_EQ(pairs(length), counted_pairs(length, before, causal ? 0 : after))
              << length << ", " << before << ", " << after << ", " << causal;
        }
      }
    }
  }
  attention.causal = false;
  attention.window_before = 2;
  attention.window_after = kLargest;
  constexpr double kMany = 1e10;
  EXPECT_DOUBLE_EQ(pairs(static_cast<std::int64_t>(kMany)), kMany * (kMany + 1) / 2 + 2 * kMany - 3);
}

TEST(NetworkCost, RefusesWhatDoesNotFit) {
  const Engine engine;
  NetworkSpec spec;
  spec.width = 8;
  spec.embedding.vocabulary = 5;
  std::vector<std::int64_t> lengths = {3};
  const auto says = [&](const NetworkTrainingPlan& plan) {
    return refusal([&] { static_cast<void>(training_bytes(engine, plan)); });
  };
  EXPECT_EQ(says({.network = spec, .lengths = lengths}), "");
  EXPECT_EQ(says({.network = spec, .lengths = lengths, .moments = -1}),
            "training_cost: moments is -1, expected at least 0");
  lengths[0] = -3;
  EXPECT_EQ(says({.network = spec, .lengths = lengths}), "training_cost: a length is -3, expected at least 0");
  lengths[0] = std::int64_t{1} << 50;
  EXPECT_EQ(says({.network = spec, .lengths = lengths}), "training_cost: the step takes more than 10¹⁴ bytes");
  lengths[0] = 3;
  spec.width = 0;
  EXPECT_EQ(says({.network = spec, .lengths = lengths}), "Network: width is 0, expected at least 1");
}

}  // namespace headlight::test::network_cost_test
