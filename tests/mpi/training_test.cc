// Parameters and moments have the bits of one process, whatever the number of ranks; and what ends a step ends it on
// all.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gradient_tree.h"
#include "headlight/mpi.h"
#include "mpi/expect_error.h"
#include "mpi/ranks.h"
#include "support/memory_limit.h"
#include "support/random.h"

namespace headlight::mpi_training_test {

using test::expect_error;
using test::last_rank;
using test::world_size;

constexpr StepOptions kStep = {.learning_rate = 1e-2, .max_norm = 1};

// Two parameters, the second in three runs of the optimiser, whose gradients are drawn for a step and a shard.
struct Model {
  Model() {
    test::Random random(3);
    for (const std::int64_t size : {100, 40001}) {
      values.push_back(random.normal_tensor<1>({size}));
      gradients.emplace_back(values.back().shape());
    }
  }
  [[nodiscard]] std::vector<Parameter> parameters() {
    const auto span = [](Tensor<float, 1>& tensor) { return std::span(tensor.begin(), tensor.end()); };
    return {{"small", {100}, span(values[0]), span(gradients[0])},
            {"large", {40001}, span(values[1]), span(gradients[1])}};
  }
  void learn(std::int64_t step, std::int64_t shard) {
    test::Random random(static_cast<std::uint64_t>(1000 * step + shard));
    for (Tensor<float, 1>& gradient : gradients) {
      const Tensor<float, 1> drawn = random.normal_tensor<1>(gradient.shape());
      for (std::int64_t e = 0; e < gradient.size(); ++e) gradient(e) += drawn(e);
    }
  }
  std::vector<Tensor<float, 1>> values, gradients;
};

std::vector<float> all_of(const std::vector<Parameter>& parameters) {
  std::vector<float> all;
  for (const Parameter& parameter : parameters) {
    all.insert(all.end(), parameter.values.begin(), parameter.values.end());
  }
  return all;
}

struct Trained {
  std::vector<float> values, moments;
  std::vector<double> norms;
};

Trained one_process(std::int64_t shards, std::int64_t steps) {
  Engine engine({.threads = 1});
  Model model;
  GradientTree tree(model.parameters(), 0, shards);
  AdamW optimizer(model.parameters());
  Trained trained;
  for (std::int64_t step = 0; step < steps; ++step) {
    optimizer.zero_gradients();
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      model.learn(step, shard);
      if (shard + 1 < shards) {
        tree.take(engine);
      } else {
        tree.finish(engine);
      }
    }
    trained.norms.push_back(optimizer.step(engine, kStep).gradient_norm);
  }
  trained.values = all_of(model.parameters());
  trained.moments = all_of(optimizer.state());
  return trained;
}

StepReport take_step(Engine& engine, Model& model, mpi::ShardedAdamW& optimizer, const StepOptions& options = kStep) {
  optimizer.zero_gradients();
  const mpi::Run shards = optimizer.shards();
  for (std::int64_t shard = shards.first; shard < shards.first + shards.count; ++shard) {
    model.learn(optimizer.steps(), shard);
    optimizer.take(engine);
  }
  return optimizer.step(engine, options);
}

// The moments of all parameters, where they are collected.
struct Moments {
  Moments() : memory(2 * kElements) {}
  [[nodiscard]] std::vector<Parameter> list() {
    std::vector<Parameter> all;
    std::size_t at = 0;
    for (const char* const moment : {"first_moment.", "second_moment."}) {
      for (const auto& [name, size] : {std::pair("small", 100), std::pair("large", 40001)}) {
        const auto count = static_cast<std::size_t>(size);
        all.push_back({std::string(moment) + name, {size}, std::span(memory).subspan(at, count)});
        at += count;
      }
    }
    return all;
  }
  static constexpr std::size_t kElements = 40101;
  std::vector<float> memory;
};

void expect_same(const std::vector<float>& one, const std::vector<float>& other) {
  ASSERT_EQ(one.size(), other.size());
  EXPECT_EQ(std::memcmp(one.data(), other.data(), one.size() * sizeof(float)), 0);
}

TEST(MpiTraining, HasTheBitsOfOneProcess) {
  mpi::Group group(MPI_COMM_WORLD);
  for (const std::int64_t shards : {1, 3, 7, 8, 16}) {
    const Trained expected = one_process(shards, 4);
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(std::to_string(shards) + " shards, " + std::to_string(threads) + " threads");
      Engine engine({.threads = threads});
      Model model;
      mpi::ShardedAdamW optimizer(group, model.parameters(), shards);
      for (const double norm : expected.norms) {
        const StepReport report = take_step(engine, model, optimizer);
        EXPECT_TRUE(report.taken());
        EXPECT_EQ(report.gradient_norm, norm);
      }
      EXPECT_EQ(optimizer.steps(), 4);
      expect_same(all_of(model.parameters()), expected.values);
      Moments moments;
      const int root = last_rank();
      optimizer.collect_moments(root, group.rank() == root ? moments.list() : std::vector<Parameter>());
      if (group.rank() == root) expect_same(moments.memory, expected.moments);
    }
  }
}

// From what one process has kept.
TEST(MpiTraining, GoesOnFromTheMomentsOfOneProcess) {
  const Trained before = one_process(5, 2), expected = one_process(5, 4);
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  Model model;
  std::copy_n(before.values.begin(), 100, model.values[0].begin());
  std::copy_n(before.values.begin() + 100, 40001, model.values[1].begin());
  mpi::ShardedAdamW optimizer(group, model.parameters(), 5);
  Moments moments;
  moments.memory = before.moments;
  for (const mpi::ShardedAdamW::Moment& own : optimizer.moments()) {
    for (const Parameter& whole : moments.list()) {
      if (whole.name == own.name) std::copy_n(whole.values.begin() + own.first, own.values.size(), own.values.begin());
    }
  }
  optimizer.set_steps(2);
  take_step(engine, model, optimizer);
  take_step(engine, model, optimizer);
  expect_same(all_of(model.parameters()), expected.values);
}

// Each rank keeps the moments of its part alone.
TEST(MpiTraining, MomentsAreSharedOut) {
  mpi::Group group(MPI_COMM_WORLD);
  Model model;
  mpi::ShardedAdamW optimizer(group, model.parameters(), 8);
  std::int64_t own = 0, most = 0, all = 0;
  for (const mpi::ShardedAdamW::Moment& moment : optimizer.moments()) {
    own += static_cast<std::int64_t>(moment.values.size());
  }
  MPI_Allreduce(&own, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&own, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_EQ(all, static_cast<std::int64_t>(2 * Moments::kElements));
  // Runs of 16384 are not cut.
  EXPECT_LE(most, all / world_size() + 2 * 16384);
}

TEST(MpiTraining, AGradientThatIsNotFiniteChangesNothing) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  Model model;
  mpi::ShardedAdamW optimizer(group, model.parameters(), 8);
  const std::vector<float> before = all_of(model.parameters());
  const mpi::Run shards = optimizer.shards();
  for (std::int64_t n = 0; n < shards.count; ++n) {
    if (shards.first + n == 3) model.gradients[1](20000) = std::numeric_limits<float>::infinity();
    optimizer.take(engine);
  }
  const StepReport report = optimizer.step(engine, kStep);
  EXPECT_FALSE(report.taken());
  EXPECT_EQ(report.non_finite, "large");
  EXPECT_EQ(optimizer.steps(), 0);
  expect_same(all_of(model.parameters()), before);
  EXPECT_TRUE(take_step(engine, model, optimizer).taken());
}

TEST(MpiTraining, ARankThatDiffersIsNamed) {
  if (last_rank() == 0) GTEST_SKIP() << "there is no rest";
  mpi::Group group(MPI_COMM_WORLD);
  const bool differs = group.rank() == last_rank();
  Engine engine({.threads = 1});
  Model model;
  expect_error([&] { mpi::ShardedAdamW(group, model.parameters(), differs ? 4 : 8); }, last_rank(), "shards=4, but");
  expect_error([&] { mpi::ShardedAdamW(group, model.parameters(), 8, {.weight_decay = differs ? 0.5 : 0.25}); },
               last_rank(), "options.weight_decay=0.5, but options.weight_decay=0.25 on rank 0");
  const float before = model.values[1](7);
  if (differs) model.values[1](7) = before + 1;
  expect_error([&] { mpi::ShardedAdamW(group, model.parameters(), 8); }, last_rank(), "parameters=2");
  model.values[1](7) = before;
  mpi::ShardedAdamW optimizer(group, model.parameters(), 8);
  expect_error([&] { take_step(engine, model, optimizer, {.learning_rate = differs ? 2.0 : 1.0}); }, last_rank(),
               "options.learning_rate=2, but");
  EXPECT_TRUE(take_step(engine, model, optimizer).taken());
}

// In whatever call the others wait.
TEST(MpiTraining, ARankThatCannotGoOnTellsAll) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  Model model;
  mpi::ShardedAdamW optimizer(group, model.parameters(), 16);
  const auto step = [&] {
    if (group.rank() == last_rank()) mpi::agree(group, "no sentences left");
    take_step(engine, model, optimizer);
  };
  expect_error(step, last_rank(), "no sentences left");
  const auto early = [&] {
    optimizer.zero_gradients();
    if (group.rank() == last_rank()) {
      optimizer.step(engine, kStep);
    } else {
      take_step(engine, model, optimizer);
    }
  };
  if (world_size() <= 8) expect_error(early, last_rank(), "step() comes before all");
  expect_error([&] { optimizer.collect_moments(world_size(), {}); }, 0, "root is");
  expect_error([&] { optimizer.collect_moments(last_rank(), {}); }, last_rank(), "whole has 0 tensors, expected the 4");
  EXPECT_TRUE(take_step(engine, model, optimizer).taken());
  EXPECT_THROW(optimizer.set_steps(-1), std::invalid_argument);
}

TEST(MpiTraining, NoMemory) {
  if (!test::kLimits) GTEST_SKIP() << "sanitizers reserve more addresses than any limit grants";
  mpi::Group group(MPI_COMM_WORLD);
  mpi::agree(group);  // MPI has what it needs
  // More than the C library ever keeps for the next one who asks.
  Tensor<float, 1> values({9 << 20}), gradient(values.shape());
  const auto make = [&] {
    mpi::ShardedAdamW(group,
                      {{"p", {values.size()}, {values.begin(), values.end()}, {gradient.begin(), gradient.end()}}}, 1);
  };
  const std::string words = "mpi::ShardedAdamW: 37748736 bytes of memory cannot be had";
  if (group.rank() == last_rank()) {
    const test::MemoryLimit limit(std::size_t{1} << 20);
    expect_error(make, last_rank(), words);
  } else {
    expect_error(make, last_rank(), words);
  }
  make();
}

TEST(MpiTraining, AnyIsWhatOneRankSays) {
  mpi::Group group(MPI_COMM_WORLD);
  EXPECT_FALSE(mpi::any(group, false));
  EXPECT_TRUE(mpi::any(group, group.rank() == last_rank()));
}

TEST(MpiTraining, RanksAgreeOnARecord) {
  mpi::Group group(MPI_COMM_WORLD);
  mpi::agree(group, {}, {{"the run", "one"}});
  if (last_rank() == 0) GTEST_SKIP() << "there is no rest";
  const std::string run = group.rank() == last_rank() ? "another" : "one";
  expect_error(
      [&] {
        mpi::agree(group, {}, {{"the run", run}});
      },
      last_rank(), "the run=another, but the run=one on rank 0: all ranks give the same");
}

}  // namespace headlight::mpi_training_test
