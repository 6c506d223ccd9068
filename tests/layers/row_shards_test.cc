// Gradients by shards of rows: the same whoever holds which shards, and together those of the whole.
#include "headlight/row_shards.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "headlight/gradient_tree.h"
#include "headlight/layers.h"
#include "layers/encoder_twin.h"
#include "layers/shards.h"
#include "layers/twins.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::row_shards_test {

using RowShardsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(RowShardsTest);

template <class Function>
void expect_refusal(Function f, const std::string& words) {
  const std::string found = refusal(f);
  EXPECT_NE(found.find(words), std::string::npos) << "'" << found << "', expected '" << words << "'";
}

template <class T, int Rank>
Tensor<T, Rank> copy_of(const Tensor<T, Rank>& from) {
  Tensor<T, Rank> copy(from.shape());
  std::copy(from.begin(), from.end(), copy.begin());
  return copy;
}

// A feed-forward part in training, whose rows know nothing of each other.
struct Part {
  explicit Part(Random& random) : layer({.width = 24, .hidden_width = 40, .dropout = 0.25f}) {
    randomize(layer, random);
    layer.set_training(true);
    parameters = layer.parameters();
  }
  // Gradients of x; those of parameters are kept in `rows`.
  Tensor<float, 3> pass(Engine& engine, RowShards& rows, const Tensor<float, 3>& x, const Tensor<float, 3>& weights) {
    Tensor<float, 3> x_gradient(x.shape());
    const OfSome attention(rows);
    SavedState saved(Checkpoint::keep_linear, 0, attention);
    zero_gradients(parameters);
    y = Tensor<float, 3>(x.shape());
    layer.forward(engine, x, y, saved, {.seed = 3, .step = 2});
    layer.backward(engine, x, saved, weights, x_gradient);
    return x_gradient;
  }
  FeedForward layer;
  std::vector<Parameter> parameters;
  Tensor<float, 3> y;
};

TEST_P(RowShardsTest, TheSameBitsWhoeverHoldsThem) {
  Random random(1);
  for (const std::int64_t length : {0, 1, 64, 200, 700}) {
    for (const std::int64_t batch : {1, 2}) {
      const Tensor<float, 3> x = random.normal_tensor<3>({batch, length, 24});
      const Tensor<float, 3> weights = random.normal_tensor<3>(x.shape());
      Part part(random);
      const RowShardsOptions options = {.length = length, .batch = batch, .shards = 5};
      Engine one(EachIsa::options(1));
      RowShards all(part.parameters, options);
      const Tensor<float, 3> x_gradient = part.pass(one, all, x, weights);
      const Tensor<float, 3> y = copy_of(part.y);
      const std::vector<std::vector<float>> truth = shards_of(one, all, part.parameters);
      for (const int threads : {1, 3}) {
        Engine engine(EachIsa::options(threads));
        for (const RowRun held : {RowRun{0, 2}, {2, 3}, {4, 1}, {1, 0}, {0, 5}}) {
          SCOPED_TRACE(testing::Message() << batch << " of " << length << " rows, shards " << held.first << " + "
                                          << held.count << ", threads " << threads);
          RowShards rows(part.parameters, options, held);
          const auto share = [&](const Tensor<float, 3>& whole) {
            return share_of(rows.rows(), rows.row_count(), whole);
          };
          const Tensor<float, 3> share_gradient = part.pass(engine, rows, share(x), share(weights));
          EXPECT_TRUE(same_bits(share_gradient, share(x_gradient)));
          EXPECT_TRUE(same_bits(part.y, share(y)));
          const std::vector<std::vector<float>> found = shards_of(engine, rows, part.parameters);
          ASSERT_EQ(static_cast<std::int64_t>(found.size()), held.count);
          for (std::size_t s = 0; s < found.size(); ++s) {
            EXPECT_TRUE(same_bits(row_of(found[s]), row_of(truth[static_cast<std::size_t>(held.first) + s]))) << s;
          }
        }
      }
    }
  }
}

// One step of an encoder, with gradients in `parameters` at the end.
struct Step {
  Step(Random& random, Norm norm, Merge merge, const std::vector<std::int64_t>& lengths)
      : encoder({.vocabulary = 40,
                 .max_positions = 300,
                 .token_types = 2,
                 .width = 32,
                 .heads = 4,
                 .feed_forward_width = 50,
                 .layers = 2,
                 .norm = norm,
                 .layer_norm_epsilon = 1e-5f,
                 .dropout = 0.1f,
                 .merge = merge}),
        tokens(random, 40, lengths) {
    randomize(encoder, random);
    encoder.set_training(true);
    parameters = encoder.parameters();
    weights = random.normal_tensor<2>({tokens.count(), 32});
    hidden = Tensor<float, 2>(weights.shape());
  }
  void pass(Engine& engine, SavedState& saved) {
    zero_gradients(parameters);
    encoder.forward(engine, tokens.input(), hidden, saved, {.seed = 5, .step = 17});
    encoder.backward(engine, tokens.input(), saved, weights);
  }
  // The sum of all shards.
  void pass(Engine& engine, SavedState& saved, RowShards& rows, GradientTree& tree) {
    pass(engine, saved);
    for (std::int64_t shard = 0; shard < rows.count(); ++shard) {
      rows.give(engine, shard);
      if (shard + 1 < rows.count()) {
        tree.take(engine);
      } else {
        tree.finish(engine);
      }
    }
  }
  Encoder encoder;
  Tokens tokens;
  std::vector<Parameter> parameters;
  Tensor<float, 2> weights, hidden;
};

// A pass forward knows nothing of shards, and their gradients add up to those of all rows.
TEST_P(RowShardsTest, TogetherTheyAreTheWhole) {
  Random random(2);
  Engine engine(options(2)), another(options(3));
  for (const auto& [norm, merge] : {std::pair{Norm::post, Merge::concatenate},
                                    {Norm::pre, Merge::weighted},
                                    {Norm::pre, Merge::weighted_by_input},
                                    {Norm::post, Merge::gated_by_head}}) {
    for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{200}, {100, 30, 1, 90}}) {
      Step step(random, norm, merge, lengths);
      SavedState saved;
      step.pass(engine, saved);
      const std::vector<float> truth = gradients_of(step.parameters);
      const Tensor<float, 2> hidden = copy_of(step.hidden);
      RowShards rows(step.parameters,
                     {.length = step.tokens.count(), .shards = 3, .offsets = step.tokens.input().offsets});
      GradientTree tree(step.parameters, 0, 3);
      const ShardedAttention attention(rows);
      SavedState by_shards(Checkpoint::keep_linear, 0, attention);
      step.pass(engine, by_shards, rows, tree);
      EXPECT_TRUE(same_bits(step.hidden, hidden));
      const std::vector<float> found = gradients_of(step.parameters);
      EXPECT_TRUE(within(row_of(found), row_of(truth), 1e-5));
      // Whatever is kept, on any number of threads.
      for (const Checkpoint checkpoint : {Checkpoint::layer_input, Checkpoint::every_k_layers}) {
        SavedState again(checkpoint, 0, attention);
        step.pass(another, again, rows, tree);
        EXPECT_TRUE(same_bits(row_of(gradients_of(step.parameters)), row_of(found)));
      }
    }
  }
}

// A decoder layer, whose memory has shards of its own.
TEST_P(RowShardsTest, ADecoderAndItsMemory) {
  Random random(4);
  TransformerDecoderLayer layer({.width = 16, .heads = 2, .norm = Norm::pre});
  randomize(layer, random);
  layer.set_training(true);
  const std::vector<Parameter> parameters = layer.parameters();
  const auto x = random.normal_tensor<3>({2, 150, 16}), memory = random.normal_tensor<3>({2, 270, 16}),
             weights = random.normal_tensor<3>(x.shape());
  Engine engine(options(2));
  Tensor<float, 3> y(x.shape()), x_gradient(x.shape()), memory_gradient(memory.shape());
  const auto pass = [&](const TrainingAttention& attention) {
    SavedState saved(Checkpoint::keep_linear, 0, attention);
    zero_gradients(parameters);
    std::fill(memory_gradient.begin(), memory_gradient.end(), 0.0f);
    layer.forward(engine, x, memory, y, saved, {.seed = 9});
    layer.backward(engine, x, memory, saved, weights, x_gradient, memory_gradient);
  };
  pass(fused_attention());
  const std::vector<float> truth = gradients_of(parameters);
  const Tensor<float, 3> of_x = copy_of(x_gradient), of_memory = copy_of(memory_gradient);
  RowShards rows(parameters, {.length = 150, .memory_length = 270, .batch = 2, .shards = 4});
  EXPECT_EQ(rows.memory_row_count(), 270);
  pass(ShardedAttention(rows));
  EXPECT_TRUE(same_bits(x_gradient, of_x));
  EXPECT_TRUE(same_bits(memory_gradient, of_memory));
  for (const float gradient : gradients_of(parameters)) ASSERT_EQ(gradient, 0.0f);
  std::vector<float> sum(truth.size());
  for (const std::vector<float>& shard : shards_of(engine, rows, parameters)) {
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += shard[e];
  }
  EXPECT_TRUE(within(row_of(sum), row_of(truth), 1e-5));
}

// What stands behind the last layer is given its rows part by part.
TEST_P(RowShardsTest, AReadout) {
  Random random(6);
  Engine engine(options(2));
  Linear readout(20, 7);
  randomize(readout, random);
  readout.set_training(true);
  const std::vector<Parameter> parameters = readout.parameters();
  const auto x = random.normal_tensor<2>({200, 20}), weights = random.normal_tensor<2>({200, 7});
  RowShards rows(parameters, {.length = 200, .shards = 2, .block = 64});
  rows.for_each_part(engine, parameters, [&](const RowShards::Part& part) {
    const auto some = [&](const Tensor<float, 2>& all) {
      return View<const float, 2>(&all(part.first, 0), {part.count, all.shape()[1]});
    };
    readout.backward(engine, some(x), some(weights), {});
  });
  const std::vector<std::vector<float>> found = shards_of(engine, rows, parameters);
  // Rows 0 … 63 and 192 … 199 are of shard 0.
  for (const std::size_t shard : {std::size_t{0}, std::size_t{1}}) {
    std::vector<float> bias(7);
    for (std::int64_t i = 0; i < 200; ++i) {
      if ((i < 64 || i >= 192) != (shard == 0)) continue;
      for (std::int64_t n = 0; n < 7; ++n) bias[static_cast<std::size_t>(n)] += weights(i, n);
    }
    EXPECT_TRUE(within(row_of({found[shard].end() - 7, found[shard].end()}), row_of(bias), 1e-6));
  }
}

TEST(RowShards, BlocksAreDistributedInAZigzag) {
  const auto first_rows = [](const RowShards& rows) {
    std::vector<std::array<std::int64_t, 3>> all;
    for (const RowShards::Part& part : rows.parts()) all.push_back({part.shard, part.whole, part.count});
    return all;
  };
  using Parts = std::vector<std::array<std::int64_t, 3>>;
  const RowShards rows({}, {.length = 500, .shards = 3, .block = 64});
  // Neighbours of one shard are one part.
  EXPECT_EQ(first_rows(rows),
            (Parts{{0, 0, 64}, {0, 320, 128}, {1, 64, 64}, {1, 256, 64}, {1, 448, 52}, {2, 128, 128}}));
  const RowShards held({}, {.length = 500, .shards = 3, .block = 64}, {1, 2});
  EXPECT_EQ(held.rows().size(), 2U);
  EXPECT_EQ(held.row_count(), 64 + 64 + 52 + 128);
  EXPECT_EQ(first_rows(held), (Parts{{0, 64, 64}, {0, 256, 64}, {0, 448, 52}, {1, 128, 128}}));
  EXPECT_EQ(held.parts()[1].first, 64 + 128);
  EXPECT_EQ(RowShards({}, {.length = 100000, .shards = 2}).options().block, 1024);
  EXPECT_EQ(RowShards({}, {.length = 100, .shards = 2}).options().block, 64);
  // One block, however long it might be.
  const std::array<std::int64_t, 3> offsets = {0, 70, 100};
  const std::int64_t longest = std::numeric_limits<std::int64_t>::max() / 64 * 64;
  const RowShards whole({}, {.length = 100, .shards = 2, .block = longest, .offsets = offsets});
  EXPECT_EQ(whole.options().block, 128);
  EXPECT_EQ(first_rows(whole), (Parts{{0, 0, 100}}));
}

// Of a bias that tells distances: wherever they are to lie, and nowhere else.
TEST(RowShards, SumsByDistanceFitTheSequence) {
  Random random(8);
  Engine engine({.threads = 2});
  RowShards rows({}, {.length = 100, .shards = 2, .block = 64});
  const ShardedAttention attention(rows);
  const auto query = random.normal_tensor<4>({1, 100, 2, 3}), key = random.normal_tensor<4>({1, 100, 1, 3});
  const Tensor<float, 4> without_heads({1, 100, 0, 3});
  Tensor<float, 4> out(query.shape());
  Tensor<float, 1> memory({2 * 2 * 199});
  const View<float, 3> log_sum_exp(memory.data(), {1, 2, 100});
  Tensor<float, 3> distances({2, 2, 199}), spaced({3, 2, 250});
  headlight::attention(engine, query, key, key, out, {.log_sum_exp = log_sum_exp});
  const auto differentiate = [&](const View<const float, 4>& keys, const View<float, 3>& to) {
    attention.differentiate_distances(engine, query, keys, keys, out, log_sum_exp, query, to, {});
  };
  differentiate(key, distances);
  std::fill(spaced.begin(), spaced.end(), 7.0f);
  differentiate(key, {&spaced(0, 0, 20), {2, 2, 199}, {500, 250, 1}});
  for (std::int64_t s = 0; s < 3; ++s) {
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t n = 0; n < 250; ++n) {
        const bool is_there = s < 2 && n >= 20 && n < 219;
        ASSERT_EQ(spaced(s, h, n), is_there ? distances(s, h, n - 20) : 7.0f) << s << " " << h << " " << n;
      }
    }
  }
  const auto refuses = [&](const View<const float, 4>& keys, const View<float, 3>& to, const std::string& words) {
    expect_refusal([&] { differentiate(keys, to); }, "TrainingAttention::differentiate_distances: " + words);
  };
  float* const data = distances.data();
  refuses(key, {data, {2, 2, 198}}, "distances has shape [2, 2, 198], expected [2, 2, 199]");
  refuses(key, {data, {1, 2, 199}}, "distances has shape [1, 2, 199], expected [2, 2, 199]");
  refuses(key, {nullptr, {2, 2, 199}}, "distances");
  refuses(key, {data, {2, 2, 199}, {0, 199, 1}}, "distances");
  refuses(key, {out.data(), {2, 2, 199}, {199, 199, 1}}, "distances");
  refuses(key, {memory.data(), {2, 2, 199}}, "distances overlaps log_sum_exp in memory");
  refuses(without_heads, distances, "query has 2 heads, expected a multiple of the 0");
  const View<const float, 4> fewer(query.data(), {1, 99, 2, 3}), fewer_out(out.data(), fewer.shape);
  const View<const float, 3> fewer_sums(memory.data(), {1, 2, 99});
  expect_refusal(
      [&] {
        attention.differentiate_distances(engine, fewer, key, key, fewer_out, fewer_sums, fewer, {data, {2, 2, 198}},
                                          {});
      },
      "query has 99 rows, expected 100, those of the shards");
}

TEST(RowShards, AllocatesNothingInTheSecondStep) {
  for (const int threads : {1, 3}) {
    Engine engine({.threads = threads});
    wait_for_workers(engine);
    Random random(3);
    Step step(random, Norm::post, Merge::weighted_by_input, {200});
    RowShards rows(step.parameters, {.length = 200, .shards = 2});
    GradientTree tree(step.parameters, 0, 2);
    const ShardedAttention attention(rows);
    SavedState saved(Checkpoint::keep_linear, 0, attention);
    step.pass(engine, saved, rows, tree);
    const AllocationCounter counter;
    step.pass(engine, saved, rows, tree);
    EXPECT_EQ(counter.count(), 0) << threads;
  }
}

TEST(RowShards, Refusals) {
  Random random(1);
  Engine engine({.threads = 1});
  Part part(random);
  const auto refuses = [&](const RowShardsOptions& options, const RowRun& held, const std::string& words) {
    expect_refusal([&] { RowShards(part.parameters, options, held); }, words);
  };
  refuses({.length = -1}, {0, 1}, "length is -1");
  refuses({.length = 9, .shards = 0}, {0, 0}, "shards is 0");
  refuses({.length = 9, .shards = 2}, {1, 2}, "held has 2 shards from number 1 on");
  refuses({.length = 9, .block = 65}, {0, 1}, "block is 65");
  const std::array<std::int64_t, 3> offsets = {0, 4, 8};
  refuses({.length = 9, .offsets = offsets}, {0, 1}, "offsets");
  refuses({.length = 8, .batch = 2, .offsets = offsets}, {0, 1}, "offsets is given, expected a batch of 1");
  RowShards rows(part.parameters, {.length = 9});
  const Tensor<float, 3> ten({1, 10, 24}), two({2, 9, 24}), nine({1, 9, 24});
  expect_refusal([&] { part.pass(engine, rows, ten, ten); }, "x has 10 rows, expected 9, those of the shards");
  expect_refusal([&] { part.pass(engine, rows, two, two); }, "x has 2 samples, expected 1");
  expect_refusal([&] { rows.give(engine, 1); }, "shard is 1, expected 0 to 0");
  for (const std::int64_t shard : {-1, 1}) {
    expect_refusal([&] { rows.keep(engine, shard, part.parameters.front().gradient); }, "expected 0 to 0");
  }
  RowShards none({}, {.length = 9});
  expect_refusal([&] { part.pass(engine, none, nine, nine); }, "of none of its parameters");
  RowShards some(part.parameters, {.length = 9, .shards = 2}, {0, 1});
  expect_refusal([&] { ShardedAttention{some}; }, "rows holds 1 shards, expected all 2");
  part.layer.set_training(false);
  expect_refusal([&] { RowShards(part.layer.parameters(), {.length = 9}); }, "has no gradient");
}

}  // namespace headlight::test::row_shards_test
