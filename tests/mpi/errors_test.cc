// Whatever keeps one rank from going on ends the call on all of them, in time, and is told by its name.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/mpi.h"
#include "mpi/expect_error.h"
#include "mpi/ranks.h"
#include "support/memory_limit.h"

namespace headlight::mpi_errors_test {

using test::expect_error;
using test::last_rank;
using Clock = std::chrono::steady_clock;

constexpr AttentionShape kShape = {
    .query_length = 640, .key_length = 640, .query_heads = 4, .key_value_heads = 4, .head_dim = 16, .value_dim = 20};

// A call of that shape, everything as plan() says.
struct Shares {
  Shares(const AttentionShape& whole, int rank, int size) : Shares(whole, mpi::plan(whole, {}, rank, size)) {}
  Shares(const AttentionShape& whole, const mpi::Plan& plan)
      : query({whole.batch, plan.query_rows, whole.query_heads, whole.head_dim}),
        key({whole.batch, plan.key_rows, whole.key_value_heads, whole.head_dim}),
        value({whole.batch, plan.key_rows, whole.key_value_heads, whole.value_dim}),
        out({whole.batch, plan.query_rows, whole.query_heads, whole.value_dim}) {}
  Tensor<float, 4> query, key, value, out;
};

void call(mpi::Group& group, const AttentionShape& whole, const AttentionOptions& options = {}) {
  Engine engine({.threads = 1});
  Shares shares(whole, group.rank(), group.size());
  mpi::attention(group, engine, whole, shares.query, shares.key, shares.value, shares.out, options);
}

TEST(MpiErrors, OtherOptionsThanTheRest) {
  if (last_rank() == 0) GTEST_SKIP() << "there is no rest";
  mpi::Group group(MPI_COMM_WORLD);
  const auto differ = [&](auto change, const std::string& words) {
    AttentionOptions options;
    if (group.rank() == last_rank()) change(options);
    expect_error([&] { call(group, kShape, options); }, last_rank(), words);
  };
  differ(
      [](AttentionOptions& options) {
        options.window = {5, -1};
      },
      "options.window=5, -1, but options.window=-1, -1");
  differ([](AttentionOptions& options) { options.causal = Causal::top_left; }, "options.causal");
  differ([](AttentionOptions& options) { options.dropout.seed = 7; }, "options.dropout.seed");
  differ([](AttentionOptions& options) { options.scale = 0.5f; }, "options.scale");
  static const std::vector<float> slopes(4, 0.5f);
  differ([](AttentionOptions& options) { options.alibi = slopes; }, "options.alibi");
  AttentionShape shape = kShape;
  if (group.rank() == last_rank()) shape.key_length += 64;
  expect_error([&] { call(group, shape); }, last_rank(), "whole");
  // And then it goes on.
  call(group, kShape);
}

TEST(MpiErrors, WrongArguments) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  Shares shares(kShape, group.rank(), group.size());
  Tensor<float, 4> small({1, 3, 4, 20});
  const View<float, 4> out = group.rank() == last_rank() ? small.view() : shares.out.view();
  expect_error([&] { mpi::attention(group, engine, kShape, shares.query, shares.key, shares.value, out); }, last_rank(),
               "out has shape [1, 3, 4, 20]");
  const Tensor<std::uint8_t, 4> mask({1, 1, 1, 1});
  const Tensor<float, 3> sums({1, 4, shares.query.shape()[1]});
  Tensor<float, 1> sinks({4});
  expect_error(
      [&] {
        mpi::attention_backward(group, engine, kShape, shares.query, shares.key, shares.value, shares.out, sums,
                                shares.out, {.sinks = sinks});
      },
      0, "gradients.sinks is given, expected none: there are no sinks");
  expect_error([&] { call(group, kShape, {.mask = BooleanMask(mask, MaskMeans::attend)}); }, 0,
               "options.mask is given");
  expect_error(
      [&] {
        mpi::attention(group, engine, kShape, shares.query, shares.key, shares.value, shares.out, {}, {.block = 100});
      },
      0, "spread.block is 100");
  call(group, kShape);
}

TEST(MpiErrors, NoMemory) {
  if (!test::kLimits) GTEST_SKIP() << "sanitizers reserve more addresses than any limit grants";
  mpi::Group group(MPI_COMM_WORLD);
  AttentionShape whole = kShape;
  whole.batch = 64;
  Engine engine({.threads = 1});
  Shares shares(whole, group.rank(), group.size());
  const auto run = [&] { mpi::attention(group, engine, whole, shares.query, shares.key, shares.value, shares.out); };
  call(group, kShape);  // MPI has what it needs
  if (group.rank() == last_rank()) {
    const test::MemoryLimit limit(std::size_t{1} << 20);
    expect_error(run, last_rank(), "bytes of memory cannot be had");
  } else {
    expect_error(run, last_rank(), "bytes of memory cannot be had");
  }
  run();
}

TEST(MpiErrors, WrongRuns) {
  mpi::Group group(MPI_COMM_WORLD);
  const std::int64_t rows = 2 * group.size();
  Tensor<float, 4> share({1, 2, 1, 1}), whole({1, rows, 1, 1});
  share(0, 0, 0, 0) = static_cast<float>(2 * group.rank() + 1);
  share(0, 1, 0, 0) = static_cast<float>(2 * group.rank() + 2);
  const auto collect = [&](const std::vector<mpi::Run>& runs, int root) {
    const bool writes = group.rank() == root;
    mpi::collect(group, root, runs, share, writes ? whole.view() : View<float, 4>());
  };
  const std::vector<mpi::Run> right = {{2 * group.rank(), 2}};
  const auto differ = [&](const std::vector<mpi::Run>& wrong, int rank, const std::string& words) {
    expect_error([&] { collect(group.rank() == last_rank() ? wrong : right, 0); }, rank, words);
  };
  differ({{-1, 2}}, last_rank(), "runs have one of 2 rows from row -1 on");
  differ({{0, 3}, {0, -1}}, last_rank(), "runs have one of -1 rows");
  differ({{0, 3}}, last_rank(), "share has shape [1, 2, 1, 1], expected [1, 3, 1, 1]");
  // The root sees it.
  differ({{rows - 1, 2}}, 0,
         "runs of rank " + std::to_string(last_rank()) + " end with row " + std::to_string(rows + 1));
  expect_error([&] { collect(right, group.size()); }, 0, "root is " + std::to_string(group.size()));
  Tensor<float, 4> small({1, 2, 2, 1});
  const View<float, 4> to = group.rank() == last_rank() ? small.view() : View<float, 4>();
  expect_error([&] { mpi::collect(group, last_rank(), right, share, to); }, last_rank(), "whole has shape");
  // And then it goes on.
  collect(right, last_rank());
  if (group.rank() != last_rank()) return;
  for (std::int64_t row = 0; row < rows; ++row) EXPECT_EQ(whole(0, row, 0, 0), static_cast<float>(row + 1));
}

TEST(MpiErrors, AProblemOfOneRankIsToldToAll) {
  mpi::Group group(MPI_COMM_WORLD);
  mpi::agree(group);
  expect_error([&] { mpi::agree(group, group.rank() == last_rank() ? "no such file" : ""); }, last_rank(),
               "rank " + std::to_string(last_rank()) + ": no such file");
  mpi::agree(group);
}

TEST(MpiErrors, ARankThatDoesNotCome) {
  if (last_rank() == 0) GTEST_SKIP() << "nobody waits for it";
  mpi::Group group(MPI_COMM_WORLD, {.timeout = std::chrono::milliseconds(1000)});
  // It comes when all others have given it up.
  if (group.rank() == last_rank()) MPI_Barrier(MPI_COMM_WORLD);
  expect_error([&] { call(group, kShape); }, last_rank(), "no sign of life for 1 s");
  if (group.rank() != last_rank()) MPI_Barrier(MPI_COMM_WORLD);
  // The group has ended: at once, and with the same words.
  expect_error([&] { call(group, kShape); }, last_rank(), "no sign of life for 1 s");
  MPI_Barrier(MPI_COMM_WORLD);
}

// In the middle of its work, by a signal.
TEST(MpiErrors, ARankThatHangs) {
  if (last_rank() == 0) GTEST_SKIP() << "nobody waits for it";
  mpi::Group group(MPI_COMM_WORLD, {.timeout = std::chrono::milliseconds(1000)});
  int last = static_cast<int>(::getpid());
  MPI_Bcast(&last, 1, MPI_INT, last_rank(), MPI_COMM_WORLD);
  std::thread stopping;
  if (group.rank() == 0) {
    stopping = std::thread([last] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      ::kill(last, SIGSTOP);
    });
  }
  AttentionShape whole = kShape;
  whole.query_length = whole.key_length = 2048;
  const Clock::time_point begin = Clock::now();
  expect_error(
      [&] {
        while (Clock::now() - begin < std::chrono::seconds(60)) call(group, whole);
      },
      last_rank(), "no sign of life for 1 s");
  if (stopping.joinable()) {
    stopping.join();
    // It goes on when the first, at least, has given it up.
    ::kill(last, SIGCONT);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiErrors, GroupsThatCannotBe) {
  EXPECT_THROW(mpi::Group(MPI_COMM_NULL), std::invalid_argument);
  EXPECT_THROW(mpi::Group(MPI_COMM_WORLD, {.timeout = std::chrono::milliseconds(0)}), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(mpi::plan(kShape, {}, 3, 3)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(mpi::plan(kShape, {}, 0, 3, {.head_ranks = 3})), std::invalid_argument);
}

}  // namespace headlight::mpi_errors_test
