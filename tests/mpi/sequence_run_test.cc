// A run of training on one sequence whose rows are spread over ranks has the bits of one process, and goes on with
// another number of ranks.
#include <algorithm>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gradient_tree.h"
#include "headlight/layers.h"
#include "headlight/loss.h"
#include "headlight/mpi.h"
#include "layers/shards.h"
#include "mpi/ranks.h"
#include "support/compare.h"
#include "support/quick.h"

namespace headlight::mpi_sequence_run_test {

using test::held_by;
using test::row_of;

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

TEST(MpiSequenceRun, IsThatOfOneProcessAndGoesOnWithAnotherNumberOfRanks) {
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

}  // namespace headlight::mpi_sequence_run_test
