// Engines that borrow the caller's pool.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "headlight/engine.h"
#include "runtime/parallel.h"
#include "support/allocation_counter.h"
#include "support/queue_pool.h"

namespace headlight::runtime::executor_test {

using test::QueuePool;

EngineOptions with_executor(const Executor& executor, int threads = 0) {
  EngineOptions options;
  options.threads = threads;
  options.isa = Isa::scalar;
  options.executor = &executor;
  return options;
}

// Whether every task ran once, on a worker below `workers` that nobody else was on.
bool runs_right(Engine& engine, int tasks, int workers) {
  std::vector<std::atomic<int>> times(static_cast<std::size_t>(tasks));
  std::vector<std::atomic<bool>> occupied(static_cast<std::size_t>(workers));
  std::atomic<int> wrong = 0;
  parallel_for(engine, tasks, workers, [&](std::int64_t task, int worker) {
    ++times[static_cast<std::size_t>(task)];
    if (worker >= workers || occupied[static_cast<std::size_t>(worker)].exchange(true)) ++wrong;
    occupied[static_cast<std::size_t>(worker)] = false;
  });
  for (const auto& count : times) wrong += count == 1 ? 0 : 1;
  return wrong == 0;
}

TEST(Executor, RunsTheTasks) {
  QueuePool pool(3);
  const Executor executor = pool.executor();
  Engine engine(with_executor(executor));
  EXPECT_EQ(engine.threads(), 4);
  for (int call = 0; call < 50; ++call) EXPECT_TRUE(runs_right(engine, call, 4));
  EXPECT_GT(pool.tasks_started(), 0);
}

TEST(Executor, ThreadsOnlyLowerItsWorkerCount) {
  QueuePool pool(2);
  const Executor executor = pool.executor();
  EXPECT_EQ(Engine(with_executor(executor, 2)).threads(), 2);
  EXPECT_EQ(Engine(with_executor(executor, 100)).threads(), 3);
  Engine alone(with_executor(executor, 1));
  EXPECT_TRUE(runs_right(alone, 20, 4));
  EXPECT_EQ(pool.tasks_started(), 0);
}

TEST(Executor, InsideItsWorkersEverythingIsInline) {
  QueuePool pool(1);
  const Executor executor = pool.executor();
  Engine outside(with_executor(executor));
  int threads = 0;
  bool right = false, on_this_thread = true;
  pool.run_on_worker([&] {
    threads = Engine(with_executor(executor, 4)).threads();
    // With one worker, which is this one, waiting for a helper would never end.
    right = runs_right(outside, 20, 2);
    const std::thread::id here = std::this_thread::get_id();
    parallel_for(outside, 20, 2, [&](std::int64_t, int) { on_this_thread &= std::this_thread::get_id() == here; });
  });
  EXPECT_EQ(threads, 1);
  EXPECT_TRUE(right);
  EXPECT_TRUE(on_this_thread);
}

TEST(Executor, NestedCallsAndEnginesAreInline) {
  QueuePool pool(2);
  const Executor executor = pool.executor();
  Engine engine(with_executor(executor));
  std::atomic<int> inner = 0, threads = 0;
  parallel_for(engine, 12, 3, [&](std::int64_t, int) {
    parallel_for(engine, 5, 3, [&](std::int64_t, int worker) { inner += worker == 0 ? 1 : 1000; });
    EngineOptions options;
    options.threads = 2;
    threads += Engine(options).threads();
  });
  EXPECT_EQ(inner, 60);
  EXPECT_EQ(threads, 12);
}

TEST(Executor, ManyThreadsShareOneEngine) {
  QueuePool pool(2);
  const Executor executor = pool.executor();
  Engine engine(with_executor(executor));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 50; ++call) wrong += runs_right(engine, 10, 3) ? 0 : 1;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// The smallest pool that the interface allows: it runs everything before run() returns.
TEST(Executor, MayRunEverythingAtOnce) {
  Executor executor;
  executor.worker_count = [](void*) { return 3; };
  executor.inside_worker = [](void*) { return false; };
  executor.run = [](void*, int count, void (*task)(void*, int), void* argument) -> void* {
    for (int index = count - 1; index >= 0; --index) task(argument, index);
    return nullptr;
  };
  executor.wait = [](void*, void*) {};
  Engine engine(with_executor(executor));
  EXPECT_TRUE(runs_right(engine, 30, 3));
  const test::AllocationCounter counter;
  std::atomic<int> sum = 0;
  parallel_for(engine, 10, 3, [&](std::int64_t task, int) { sum += static_cast<int>(task); });
  EXPECT_EQ(counter.count(), 0);
  EXPECT_EQ(sum, 45);
}

TEST(Executor, WithoutAllFourFunctionsIsRefused) {
  QueuePool pool(1);
  for (int missing = 0; missing < 4; ++missing) {
    Executor executor = pool.executor();
    const char* const names[] = {"worker_count", "inside_worker", "run", "wait"};
    if (missing == 0) executor.worker_count = nullptr;
    if (missing == 1) executor.inside_worker = nullptr;
    if (missing == 2) executor.run = nullptr;
    if (missing == 3) executor.wait = nullptr;
    try {
      Engine engine(with_executor(executor));
      FAIL() << names[missing];
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("executor.") + names[missing]), std::string::npos);
    }
  }
  Executor executor = pool.executor();
  executor.worker_count = [](void*) { return 0; };
  EXPECT_THROW(Engine(with_executor(executor)), std::invalid_argument);
}

}  // namespace headlight::runtime::executor_test
