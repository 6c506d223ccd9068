// Layers whose rows are spread over ranks have the bits of one process: forward, backward, and runs of training.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gradient_tree.h"
#include "headlight/layers.h"
#include "headlight/loss.h"
#include "headlight/mpi.h"
#include "layers/encoder_twin.h"
#include "layers/twins.h"
#include "mpi/expect_error.h"
#include "mpi/ranks.h"
#include "support/compare.h"
#include "support/quick.h"

namespace headlight::mpi_sequence_test {

using test::expect_error;
using test::last_rank;

View<const float, 1> row_of(const std::vector<float>& numbers) {
  return {numbers.data(), {static_cast<std::int64_t>(numbers.size())}};
}

std::vector<float> gradients_of(const std::vector<Parameter>& parameters) {
  std::vector<float> all;
  for (const Parameter& parameter : parameters) {
    all.insert(all.end(), parameter.gradient.begin(), parameter.gradient.end());
  }
  return all;
}

Tensor<float, 3> share_of(std::span<const mpi::Run> runs, std::int64_t rows, const Tensor<float, 3>& whole) {
  Tensor<float, 3> share({whole.shape()[0], rows, whole.shape()[2]});
  const auto as_heads = [](const auto& tensor) {
    return View<float, 4>(const_cast<float*>(tensor.data()),
                          {tensor.shape()[0], tensor.shape()[1], 1, tensor.shape()[2]});
  };
  mpi::take_share(runs, as_heads(whole), as_heads(share));
  return share;
}

// A pass, and what it leaves: rows, and gradients of each shard that was held.
struct Results {
  Tensor<float, 3> y, x_gradient, memory_gradient;
  std::vector<std::vector<float>> shards;
};

std::vector<std::vector<float>> shards_of(Engine& engine, RowShards& rows, const std::vector<Parameter>& parameters) {
  std::vector<std::vector<float>> all;
  for (std::int64_t shard = 0; shard < rows.count(); ++shard) {
    rows.give(engine, shard);
    all.push_back(gradients_of(parameters));
  }
  return all;
}

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

mpi::Run held_by(int rank, int size, std::int64_t shards) {
  const std::int64_t fewer = shards / size, longer = shards % size;
  return {rank * fewer + std::min<std::int64_t>(rank, longer), fewer + (rank < longer ? 1 : 0)};
}

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

// An encoder that learns to name each token's neighbours' sum, with embeddings, dropout and a readout.
class Run {
 public:
  static constexpr std::int64_t kLength = 330, kShards = 8, kVocabulary = 11;

  explicit Run(const RowRun& held)
      : encoder_({.vocabulary = kVocabulary,
                  .max_positions = kLength,
                  .width = 16,
                  .heads = 2,
                  .feed_forward_width = 32,
                  .layers = 2,
                  .norm = Norm::pre,
                  .dropout = 0.1f}),
        readout_(16, kVocabulary) {
    encoder_.initialize(1);
    readout_.initialize(2);
    for (Layer* layer : {static_cast<Layer*>(&encoder_), static_cast<Layer*>(&readout_)}) {
      layer->set_training(true);
      for (const Parameter& parameter : layer->parameters()) parameters_.push_back(parameter);
    }
    readout_parameters_ = readout_.parameters();
    rows.emplace(parameters_, RowShardsOptions{.length = kLength, .shards = kShards}, held);
    for (const RowRun& run : rows->rows()) {
      for (std::int64_t i = run.first; i < run.first + run.count; ++i) positions_.push_back(i);
    }
    hidden_ = Tensor<float, 2>({rows->row_count(), 16});
    gradient_ = Tensor<float, 2>(hidden_.shape());
    logits_ = Tensor<float, 2>({rows->row_count(), kVocabulary});
  }

  // Gradients of step `step`, which are kept in `rows`.
  void compute(Engine& engine, SavedState& saved, std::int64_t step) {
    const auto token = [&](std::int64_t i) { return (i * i + 7 * i * (step % 5) + step) % kVocabulary; };
    std::vector<std::int64_t> ids, labels;
    for (const std::int64_t i : positions_) {
      ids.push_back(token(i));
      labels.push_back((token(i) + token(i + 1)) % kVocabulary);
    }
    const EncoderInput input = {.ids = ids, .positions = positions_, .offsets = offsets_};
    encoder_.forward(engine, input, hidden_, saved, {.seed = 3, .step = static_cast<std::uint64_t>(step)});
    rows->for_each_part(engine, readout_parameters_, [&](const RowShards::Part& part) {
      const auto some = [&](Tensor<float, 2>& all) {
        return View<float, 2>(&all(part.first, 0), {part.count, all.shape()[1]});
      };
      const View<float, 2> logits = some(logits_);
      readout_.forward(engine, some(hidden_), logits);
      cross_entropy(
          engine, logits,
          std::span(labels).subspan(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.count)),
          {.logits_gradient = logits});
      // Of a mean over all rows.
      for (std::int64_t n = 0; n < logits.size(); ++n)
        logits.data[n] *= static_cast<float>(part.count) / static_cast<float>(kLength);
      readout_.backward(engine, some(hidden_), logits, some(gradient_));
    });
    encoder_.backward(engine, input, saved, gradient_);
  }

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> all;
    for (const Parameter& parameter : parameters_) {
      all.insert(all.end(), parameter.values.begin(), parameter.values.end());
    }
    return all;
  }
  std::optional<RowShards> rows;

 private:
  Encoder encoder_;
  Linear readout_;
  std::vector<Parameter> parameters_, readout_parameters_;
  std::vector<std::int64_t> positions_, offsets_ = {0, kLength};
  Tensor<float, 2> hidden_, gradient_, logits_;
};

// What a run is saved as.
struct Saved {
  std::int64_t steps = 0;
  std::vector<float> values{}, moments{};
  std::vector<double> norms{};
};

constexpr StepOptions kStep = {.learning_rate = 3e-3, .max_norm = 1};

std::vector<float> all_of(const std::vector<Parameter>& parameters) {
  std::vector<float> all;
  for (const Parameter& parameter : parameters) {
    all.insert(all.end(), parameter.values.begin(), parameter.values.end());
  }
  return all;
}

void fill(const std::vector<Parameter>& parameters, const std::vector<float>& all) {
  auto from = all.begin();
  for (const Parameter& parameter : parameters) {
    std::copy_n(from, parameter.values.size(), parameter.values.begin());
    from += static_cast<std::ptrdiff_t>(parameter.values.size());
  }
}

Saved one_process(std::int64_t steps) {
  Engine engine({.threads = 1});
  Run run({0, Run::kShards});
  GradientTree tree(run.parameters(), 0, Run::kShards);
  AdamW optimizer(run.parameters());
  const ShardedAttention attention(*run.rows);
  SavedState saved(Checkpoint::keep_linear, 0, attention);
  Saved end = {.steps = steps};
  for (std::int64_t step = 0; step < steps; ++step) {
    optimizer.zero_gradients();
    run.compute(engine, saved, step);
    for (std::int64_t shard = 0; shard < Run::kShards; ++shard) {
      run.rows->give(engine, shard);
      if (shard + 1 < Run::kShards) {
        tree.take(engine);
      } else {
        tree.finish(engine);
      }
    }
    end.norms.push_back(optimizer.step(engine, kStep).gradient_norm);
  }
  end.values = all_of(run.parameters());
  end.moments = all_of(optimizer.state());
  return end;
}

// Goes on from `begin`, a fresh one or what any number of ranks has saved. The moments are those of rank 0 alone.
Saved over_ranks(mpi::Group& group, int threads, const Saved& begin, std::int64_t steps) {
  Engine engine({.threads = threads});
  Run run(held_by(group.rank(), group.size(), Run::kShards));
  if (begin.steps > 0) fill(run.parameters(), begin.values);
  mpi::ShardedAdamW optimizer(group, run.parameters(), Run::kShards);
  AdamW whole(run.parameters());
  const std::vector<Parameter> moments = whole.state();
  if (begin.steps > 0) {
    fill(moments, begin.moments);
    for (const mpi::ShardedAdamW::Moment& own : optimizer.moments()) {
      const auto of = std::find_if(moments.begin(), moments.end(),
                                   [&](const Parameter& moment) { return moment.name == own.name; });
      std::copy_n(of->values.begin() + own.first, own.values.size(), own.values.begin());
    }
  }
  optimizer.set_steps(begin.steps);
  const mpi::SequenceAttention attention(group, *run.rows);
  SavedState saved(Checkpoint::keep_linear, 0, attention);
  Saved end = {.steps = steps};
  for (std::int64_t step = begin.steps; step < steps; ++step) {
    optimizer.zero_gradients();
    run.compute(engine, saved, step);
    for (std::int64_t shard = 0; shard < run.rows->count(); ++shard) {
      run.rows->give(engine, shard);
      optimizer.take(engine);
    }
    end.norms.push_back(optimizer.step(engine, kStep).gradient_norm);
  }
  optimizer.collect_moments(0, group.rank() == 0 ? moments : std::vector<Parameter>());
  end.values = all_of(run.parameters());
  end.moments = all_of(moments);
  return end;
}

TEST(MpiSequence, ARunIsThatOfOneProcessAndGoesOnWithAnotherNumberOfRanks) {
  const std::int64_t steps = test::count<std::int64_t>(50, 10);
  const Saved expected = one_process(steps);
  EXPECT_LT(expected.norms.back(), expected.norms.front());
  // Half of the steps by half of the ranks, whose rank 0 gives what it has saved to all of them.
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 2 * rank < test::world_size() ? 0 : MPI_UNDEFINED, rank, &some);
  Saved half{.steps = steps / 2,
             .values = std::vector<float>(expected.values.size()),
             .moments = std::vector<float>(expected.moments.size())};
  if (some != MPI_COMM_NULL) {
    {
      mpi::Group fewer(some);
      half = over_ranks(fewer, 1, {}, steps / 2);
    }
    MPI_Comm_free(&some);
  }
  for (std::vector<float>* const saved : {&half.values, &half.moments}) {
    MPI_Bcast(saved->data(), static_cast<int>(saved->size()), MPI_FLOAT, 0, MPI_COMM_WORLD);
  }
  mpi::Group group(MPI_COMM_WORLD);
  const Saved end = over_ranks(group, 2, half, steps);
  EXPECT_TRUE(test::same_bits(row_of(end.values), row_of(expected.values)));
  if (rank == 0) {
    EXPECT_TRUE(test::same_bits(row_of(end.moments), row_of(expected.moments)));
  }
  EXPECT_TRUE(std::equal(end.norms.begin(), end.norms.end(), expected.norms.begin() + steps / 2));
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
