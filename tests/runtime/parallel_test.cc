// Every task exactly once, each on one worker, whoever calls and from wherever.
#include "runtime/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "headlight/engine.h"
#include "headlight/out_of_memory.h"
#include "runtime/throwing_tasks.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace headlight::runtime::parallel_test {

EngineOptions with_threads(int threads) {
  EngineOptions options;
  options.threads = threads;
  options.isa = Isa::scalar;
  return options;
}

// What one parallel call did.
class Record {
 public:
  Record(std::int64_t tasks, int workers)
      : times_(static_cast<std::size_t>(tasks)), occupied_(static_cast<std::size_t>(workers)) {}

  void operator()(std::int64_t task, int worker) {
    times_[static_cast<std::size_t>(task)].fetch_add(1);
    if (worker < 0 || worker >= static_cast<int>(occupied_.size())) {
      ++wrong_;
      return;
    }
    if (occupied_[static_cast<std::size_t>(worker)].exchange(true)) ++wrong_;
    if (worker == 0 && std::this_thread::get_id() != caller_) ++wrong_;
    occupied_[static_cast<std::size_t>(worker)].store(false);
  }

  [[nodiscard]] bool is_right() const {
    return wrong_ == 0 && std::all_of(times_.begin(), times_.end(), [](const auto& times) { return times == 1; });
  }

 private:
  std::vector<std::atomic<int>> times_;
  std::vector<std::atomic<bool>> occupied_;
  std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<int> wrong_ = 0;
};

bool runs_right(Engine& engine, std::int64_t tasks, int workers) {
  Record record(tasks, std::max(1, std::min(workers, engine.threads())));
  parallel_for(engine, tasks, workers, record);
  return record.is_right();
}

class Parallel : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Parallel, ::testing::Values(1, 2, 3, 5, 8));

TEST_P(Parallel, RunsEveryTaskOnceOnAWorkerOfItsOwn) {
  Engine engine(with_threads(GetParam()));
  EXPECT_EQ(engine.threads(), GetParam());
  for (const std::int64_t tasks : {0, 1, 2, 3, 7, 8, 9, 100, 1000}) {
    for (const int workers : {0, 1, 2, 4, 8, 100})
      EXPECT_TRUE(runs_right(engine, tasks, workers)) << tasks << " on " << workers;
  }
}

// What a worker wrote in one call it finds in its own cache in the next.
TEST_P(Parallel, WorkersBeginWithTheirOwnShare) {
  const int workers = GetParam();
  Engine engine(with_threads(workers));
  constexpr std::int64_t kEach = 5;
  const std::int64_t tasks = kEach * workers + std::min(workers - 1, 2);  // the first two workers have one more
  std::vector<std::int64_t> first(static_cast<std::size_t>(workers), -1);
  std::atomic<int> arrived = 0;
  parallel_for(engine, tasks, workers, [&](std::int64_t task, int worker) {
    std::int64_t& first_of_worker = first[static_cast<std::size_t>(worker)];
    if (first_of_worker >= 0) return;
    first_of_worker = task;
    // Nobody helps others before all are there.
    for (++arrived; arrived < workers;) std::this_thread::yield();
  });
  for (int worker = 0; worker < workers; ++worker) {
    EXPECT_EQ(first[static_cast<std::size_t>(worker)], kEach * worker + std::min(worker, std::min(workers - 1, 2)));
  }
}

TEST_P(Parallel, InOrderATaskMayWaitForTheOneBefore) {
  Engine engine(with_threads(GetParam()));
  for (int call = 0; call < 20; ++call) {
    std::atomic<std::int64_t> ended = 0;
    auto wait_and_end = [&](std::int64_t task, int) {
      while (ended != task) std::this_thread::yield();
      ++ended;
    };
    parallel_for(engine, 100, GetParam(), wait_and_end, HandOut::in_order);
    EXPECT_EQ(ended, 100);
  }
}

TEST_P(Parallel, SurvivesManyShortCalls) {
  Engine engine(with_threads(GetParam()));
  std::int64_t sum = 0;
  for (std::int64_t call = 0; call < 2000; ++call) {
    std::atomic<std::int64_t> total = 0;
    parallel_for(engine, 4, GetParam(), [&](std::int64_t task, int) { total.fetch_add(task + call); });
    sum += total;
  }
  EXPECT_EQ(sum, 2000 * 6 + 4 * (2000 * 1999 / 2));
}

TEST_P(Parallel, SleepingWorkersComeToo) {
  EngineOptions options = with_threads(GetParam());
  options.spin_microseconds = 0;
  Engine engine(options);
  for (int call = 0; call < 200; ++call) {
    ASSERT_TRUE(runs_right(engine, 20, GetParam()));
    if (call % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_P(Parallel, NestedCallsComputeInline) {
  Engine engine(with_threads(GetParam()));
  Engine other(with_threads(GetParam()));
  std::atomic<int> wrong = 0;
  std::atomic<int> inner_tasks = 0;
  parallel_for(engine, 20, GetParam(), [&](std::int64_t, int) {
    const std::thread::id here = std::this_thread::get_id();
    for (Engine* nested : {&engine, &other}) {
      parallel_for(*nested, 3, GetParam(), [&](std::int64_t, int worker) {
        ++inner_tasks;
        if (GetParam() > 1 && (worker != 0 || std::this_thread::get_id() != here)) ++wrong;
      });
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(inner_tasks, 20 * 2 * 3);
  EXPECT_TRUE(runs_right(engine, 50, GetParam()));
}

// A failure ends the call, and only that.
TEST_P(Parallel, AFailureGoesOnToTheCaller) {
  Engine engine(with_threads(GetParam()));
  for (const HandOut hand_out : {HandOut::in_shares, HandOut::in_order}) {
    std::atomic<int> begun = 0;
    const auto run = [&](std::int64_t failing) {
      begun = 0;
      const auto task = [&](std::int64_t number, int) {
        ++begun;
        if (number == failing) throw OutOfMemory("task " + std::to_string(number), 12);
      };
      parallel_for_or_throw(engine, 100, engine.threads(), task, hand_out);
    };
    try {
      run(7);
      ADD_FAILURE() << "it was not thrown on";
    } catch (const OutOfMemory& failure) {
      EXPECT_STREQ(failure.what(), "task 7: 12 bytes of memory cannot be had");
      EXPECT_EQ(failure.bytes(), 12u);
    }
    if (GetParam() == 1) {
      EXPECT_EQ(begun, 8);
    }
    EXPECT_NO_THROW(run(-1));
    EXPECT_EQ(begun, 100);
  }
}

TEST_P(Parallel, ManyThreadsShareOneEngine) {
  Engine engine(with_threads(GetParam()));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 100; ++call) {
        if (!runs_right(engine, 16, GetParam())) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ParallelEngines, ManyEnginesLiveTogether) {
  std::vector<std::unique_ptr<Engine>> engines;
  for (int index = 0; index < 6; ++index) engines.push_back(std::make_unique<Engine>(with_threads(1 + index % 4)));
  for (int round = 0; round < 20; ++round) {
    for (const auto& engine : engines) EXPECT_TRUE(runs_right(*engine, 10, 4));
  }
  engines.erase(engines.begin() + 2);
  for (const auto& engine : engines) EXPECT_TRUE(runs_right(*engine, 10, 4));
}

TEST(ParallelEngines, ComeAndGo) {
  for (int round = 0; round < 50; ++round) {
    Engine engine(with_threads(3));
    EXPECT_TRUE(round % 2 == 0 || runs_right(engine, 5, 3));
  }
}

TEST(ParallelEngines, MadeInsideATaskHaveOneThread) {
  Engine engine(with_threads(2));
  std::atomic<int> threads = 0;
  std::atomic<bool> both_arrived = false;
  std::atomic<int> arrived = 0;
  parallel_for(engine, 2, 2, [&](std::int64_t, int) {
    Engine nested(with_threads(4));
    threads += nested.threads();
    // Holds each task until the other has begun, so that one of them surely runs on the worker.
    if (++arrived == 2) both_arrived = true;
    while (!both_arrived) std::this_thread::yield();
  });
  EXPECT_EQ(threads, 2);
  Engine after(with_threads(2));
  EXPECT_EQ(after.threads(), 2);
}

#if defined(__x86_64__)
TEST(ParallelEngines, WorkersComputeInTheCallersFloatingPointMode) {
  Engine engine(with_threads(2));
  constexpr unsigned kFlushToZero = 0x8000;
  const unsigned before = _mm_getcsr();
  for (const unsigned mode : {before | kFlushToZero, before & ~kFlushToZero}) {
    _mm_setcsr(mode);
    std::atomic<int> arrived = 0;
    std::atomic<int> flushing = 0;
    parallel_for(engine, 2, 2, [&](std::int64_t, int) {
      if ((_mm_getcsr() & kFlushToZero) != 0) ++flushing;
      ++arrived;
      while (arrived != 2) std::this_thread::yield();
    });
    const unsigned left = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(flushing, (mode & kFlushToZero) != 0 ? 2 : 0);
    EXPECT_EQ(left & kFlushToZero, mode & kFlushToZero);
  }
}
#endif

TEST(WorkersFor, WakesNobodyForLittle) {
  Engine engine(with_threads(4));
  EXPECT_EQ(workers_for(engine, 100, 0), 1);
  EXPECT_EQ(workers_for(engine, 100, 1000), 1);
  EXPECT_EQ(workers_for(engine, 1, 1e12), 1);
  EXPECT_EQ(workers_for(engine, 0, 1e12), 1);
  EXPECT_EQ(workers_for(engine, 3, 1e12), 3);
  EXPECT_EQ(workers_for(engine, 100, 1e300), 4);
  int previous = 1;
  for (double nanoseconds = 100; nanoseconds < 1e6; nanoseconds *= 1.3) {
    const int workers = workers_for(engine, 100, nanoseconds);
    EXPECT_GE(workers, previous);
    previous = workers;
  }
}

}  // namespace headlight::runtime::parallel_test
