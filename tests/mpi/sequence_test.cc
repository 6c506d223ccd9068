// Layers whose rows are spread over ranks have the bits of one process, forward and backward.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "headlight/mpi.h"
#include "layers/shards.h"
#include "layers/twins.h"
#include "mpi/expect_error.h"
#include "mpi/ranks.h"
#include "support/compare.h"

namespace headlight::mpi_sequence_test {

using test::expect_error;
using test::held_by;
using test::last_rank;
using test::row_of;
using test::shards_of;
using test::share_of;

// A pass, and what it leaves: rows, and gradients of each shard that was held.
struct Results {
  Tensor<float, 3> y, x_gradient, memory_gradient;
  std::vector<std::vector<float>> shards;
};

// A layer with x and, where it looks at one, a memory.
struct Case {
  RowShardsOptions rows;
  AttentionOptions self{};
  bool has_memory = false;
  TransformerLayerOptions made = {.width = 32, .heads = 4, .feed_forward_width = 40, .norm = Norm::pre};
  int head_ranks = 0;
};

class Layers {
 public:
  explicit Layers(const Case& of)
      : of_(of),
        encoder_(of.made),
        decoder_(of.made),
        x_(random_.normal_tensor<3>({of.rows.batch, of.rows.length, of.made.width})),
        memory_(random_.normal_tensor<3>({of.rows.batch, of.rows.memory_length, of.made.width})),
        weights_(random_.normal_tensor<3>(x_.shape())) {
    randomize(layer(), random_);
    layer().set_training(true);
    parameters_ = layer().parameters();
  }

  Results pass(Engine& engine, RowShards& rows, const TrainingAttention& attention, Checkpoint checkpoint) {
    SavedState saved(checkpoint, 0, attention);
    zero_gradients(parameters_);
    const auto share = [&](const Tensor<float, 3>& whole) { return share_of(rows.rows(), rows.row_count(), whole); };
    const Tensor<float, 3> x = share(x_), weights = share(weights_);
    Results results{Tensor<float, 3>(x.shape()), Tensor<float, 3>(x.shape()), {}, {}};
    const TrainingStep step = {.seed = 7, .step = 3};
    if (of_.has_memory) {
      const Tensor<float, 3> memory = share_of(rows.memory_rows(), rows.memory_row_count(), memory_);
      results.memory_gradient = Tensor<float, 3>(memory.shape());
      decoder_.forward(engine, x, memory, results.y, saved, step, of_.self);
      decoder_.backward(engine, x, memory, saved, weights, results.x_gradient, results.memory_gradient);
    } else {
      encoder_.forward(engine, x, results.y, saved, step, of_.self);
      encoder_.backward(engine, x, saved, weights, results.x_gradient);
    }
    results.shards = shards_of(engine, rows, parameters_);
    return results;
  }

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  [[nodiscard]] Layer& layer() {
    if (of_.has_memory) return decoder_;
    return encoder_;
  }

  Case of_;
  test::Random random_{5};
  TransformerEncoderLayer encoder_;
  TransformerDecoderLayer decoder_;
  Tensor<float, 3> x_, memory_, weights_;
  std::vector<Parameter> parameters_;
};

void expect_same_bits(mpi::Group& group, const Case& of, Checkpoint checkpoint = Checkpoint::keep_linear) {
  Layers layers(of);
  Engine one({.threads = 1});
  RowShards all(layers.parameters(), of.rows);
  const Results whole = layers.pass(one, all, ShardedAttention(all), Checkpoint::keep_linear);
  for (const int threads : {1, 2}) {
    SCOPED_TRACE(testing::Message() << of.rows.length << " rows, " << of.rows.shards << " shards, threads " << threads);
    Engine engine({.threads = threads});
    const mpi::Run held = held_by(group.rank(), group.size(), of.rows.shards);
    RowShards rows(layers.parameters(), of.rows, held);
    const mpi::SequenceAttention attention(group, rows, {.head_ranks = of.head_ranks});
    const Results here = layers.pass(engine, rows, attention, checkpoint);
    EXPECT_TRUE(test::same_bits(here.y, share_of(rows.rows(), rows.row_count(), whole.y)));
    EXPECT_TRUE(test::same_bits(here.x_gradient, share_of(rows.rows(), rows.row_count(), whole.x_gradient)));
    if (of.has_memory) {
      EXPECT_TRUE(test::same_bits(here.memory_gradient,
                                  share_of(rows.memory_rows(), rows.memory_row_count(), whole.memory_gradient)));
    }
    ASSERT_EQ(static_cast<std::int64_t>(here.shards.size()), held.count);
    for (std::size_t s = 0; s < here.shards.size(); ++s) {
      EXPECT_TRUE(
          test::same_bits(row_of(here.shards[s]), row_of(whole.shards[static_cast<std::size_t>(held.first) + s])))
          << "shard " << held.first << " + " << s;
    }
  }
}

TEST(MpiSequence, EncoderLayers) {
  mpi::Group group(MPI_COMM_WORLD);
  for (const std::int64_t shards : {1, 3, 8}) {
    expect_same_bits(group, {.rows = {.length = 700, .shards = shards}, .self = {.causal = Causal::top_left}});
  }
  expect_same_bits(group, {.rows = {.length = 1000, .batch = 2, .shards = 8, .block = 128}});
  expect_same_bits(group, {.rows = {.length = 90, .shards = 8}});
  for (const Merge merge : {Merge::weighted, Merge::weighted_by_input, Merge::gated_by_element}) {
    expect_same_bits(group, {.rows = {.length = 300, .shards = 8},
                             .made = {.width = 32, .heads = 4, .norm = Norm::post, .merge = merge}});
  }
}

TEST(MpiSequence, EveryMaskThatIsAnInterval) {
  mpi::Group group(MPI_COMM_WORLD);
  const std::vector<std::int64_t> offsets = {0, 100, 130, 131, 560, 600}, lengths = {500, 310};
  const RowShardsOptions rows = {.length = 600, .shards = 8};
  expect_same_bits(group, {.rows = rows, .self = {.window = {100, 30}}});
  expect_same_bits(group, {.rows = rows, .self = {.causal = Causal::bottom_right, .chunk = 150}});
  expect_same_bits(group, {.rows = {.length = 600, .batch = 2, .shards = 8},
                           .self = {.query_lengths = lengths, .key_lengths = lengths}});
  expect_same_bits(group, {.rows = {.length = 600, .shards = 8, .offsets = offsets},
                           .self = {.causal = Causal::top_left, .query_offsets = offsets}});
}

TEST(MpiSequence, WhateverIsKeptAndHoweverHeadsAreShared) {
  mpi::Group group(MPI_COMM_WORLD);
  const Case of = {.rows = {.length = 500, .shards = 8}, .self = {.causal = Causal::top_left}};
  expect_same_bits(group, of, Checkpoint::layer_input);
  for (int head_ranks = 2; head_ranks <= 4; ++head_ranks) {
    if (group.size() % head_ranks != 0 || 4 % head_ranks != 0) continue;
    Case by_heads = of;
    by_heads.head_ranks = head_ranks;
    expect_same_bits(group, by_heads);
  }
}

TEST(MpiSequence, DecoderLayers) {
  mpi::Group group(MPI_COMM_WORLD);
  for (const std::int64_t memory_length : {200, 500, 1000}) {
    expect_same_bits(group, {.rows = {.length = 500, .memory_length = memory_length, .shards = 8},
                             .self = {.causal = Causal::top_left},
                             .has_memory = true});
  }
}

TEST(MpiSequence, WhatDiffersIsToldOnAllRanks) {
  if (last_rank() == 0) GTEST_SKIP() << "there is no rest";
  mpi::Group group(MPI_COMM_WORLD);
  const bool differs = group.rank() == last_rank();
  Engine engine({.threads = 1});
  const auto pass = [&](const RowShardsOptions& options, const AttentionOptions& self) {
    Layers layers({.rows = options, .self = self});
    RowShards rows(layers.parameters(), options, held_by(group.rank(), group.size(), options.shards));
    const mpi::SequenceAttention attention(group, rows);
    layers.pass(engine, rows, attention, Checkpoint::keep_linear);
  };
  expect_error([&] { pass({.length = 300, .shards = differs ? 4 : 8}, {}); }, last_rank(), "spread.shards=4, but");
  expect_error([&] { pass({.length = 300, .shards = 8}, {.causal = differs ? Causal::top_left : Causal::none}); },
               last_rank(), "options.causal=");
  const std::vector<std::int64_t> offsets = {0, 100, 300};
  expect_error([&] { pass({.length = 300, .shards = 8}, {.query_offsets = offsets}); }, 0,
               "options.query_offsets are not the offsets of the rows' shards");
  pass({.length = 300, .shards = 8}, {});
}

TEST(MpiSequence, StatisticsAddUp) {
  mpi::Group group(MPI_COMM_WORLD);
  const Case of = {.rows = {.length = 500, .shards = 8}};
  Layers layers(of);
  Engine engine({.threads = 1});
  RowShards rows(layers.parameters(), of.rows, held_by(group.rank(), group.size(), 8));
  const mpi::SequenceAttention attention(group, rows, {.head_ranks = 1});
  EXPECT_EQ(attention.statistics().bytes_received, 0);
  layers.pass(engine, rows, attention, Checkpoint::keep_linear);
  const mpi::Statistics once = attention.statistics();
  layers.pass(engine, rows, attention, Checkpoint::keep_linear);
  EXPECT_EQ(attention.statistics().bytes_received, 2 * once.bytes_received);
  EXPECT_GT(attention.statistics().seconds, once.seconds);
  EXPECT_EQ(once.bytes_received > 0, group.size() > 1);
}

}  // namespace headlight::mpi_sequence_test
