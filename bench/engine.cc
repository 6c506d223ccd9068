// What stands around the arithmetic: handing out work, waking workers, making an engine, idle workers, and the size of
// a program that computes attention.
#include "headlight/engine.h"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "harness/attention_case.h"
#include "harness/clock.h"
#include "harness/statistics.h"
#include "harness/suite.h"
#include "runtime/parallel.h"

namespace headlight::bench {
namespace {

// For what cannot simply be called again and again: times taken by the case itself.
Work with_times(const std::vector<double>& seconds) {
  Work work;
  work.facts = {{"seconds_best", least(seconds)},
                {"seconds_median", median(seconds)},
                {"rounds", static_cast<double>(seconds.size())}};
  return work;
}

int rounds_of(const CaseContext& context) { return context.options.smoke ? 2 : context.options.quick ? 50 : 300; }

void run_empty_tasks(Engine& engine) {
  runtime::parallel_for(engine, engine.threads(), engine.threads(), [](std::int64_t, int) noexcept {});
}

// A call that does nothing on every worker, one after another, so that the workers are awake.
Work empty_task(const CaseContext& context) {
  Work work;
  work.run = [engine = &context.engine] { run_empty_tasks(*engine); };
  return work;
}

// A call whose workers must meet, after the workers fell asleep: the time until all have come.
Work wake_up(const CaseContext& context) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds_of(context); ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int> arrived{0};
    const int workers = context.engine.threads();
    const auto start = Clock::now();
    runtime::parallel_for(context.engine, workers, workers, [&](std::int64_t, int) noexcept {
      ++arrived;
      // A worker that does not come at all leaves both tasks to one worker.
      while (arrived < workers && seconds_since(start) < 5e-3) std::this_thread::yield();
    });
    seconds.push_back(seconds_since(start));
  }
  return with_times(seconds);
}

Work make_engine(const CaseContext& context) {
  std::vector<double> seconds;
  EngineOptions options;
  options.threads = context.engine.threads();
  options.isa = context.engine.isa();
  for (int round = 0; round < rounds_of(context); ++round) {
    const auto start = Clock::now();
    const Engine engine(options);
    seconds.push_back(seconds_since(start));
  }
  return with_times(seconds);
}

Work smallest_attention(const CaseContext& context) {
  AttentionCase shape;
  shape.query_length = shape.key_length = 5;
  shape.query_heads = shape.key_value_heads = 2;
  shape.head_dim = 4;
  Options options = context.options;
  options.peers = false;
  return attention_work(shape, {context.engine, options});
}

// The processor time of this process, all threads, for each second that an engine with nothing to do exists.
Work idle_workers(const CaseContext& context) {
  run_empty_tasks(context.engine);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto used = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const double before = used();
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(context.options.smoke ? 1 : 200));
  Work work;
  work.facts = {{"busy_share", (used() - before) / seconds_since(start)}};
  return work;
}

// The first program of README.md with headlight inside and libc outside, stripped.
Work hello_attention(const CaseContext&) {
  Work work;
  work.facts = {{"bytes", static_cast<double>(std::filesystem::file_size(HEADLIGHT_HELLO_ATTENTION))}};
  return work;
}

std::vector<Case> cases() {
  return {{"empty_task", empty_task, true, true},
          {"wake_up", wake_up, true, true},
          {"smallest_attention", smallest_attention, true, true},
          {"make_engine", make_engine, true, true},
          {"idle_workers", idle_workers, true, true},
          {"hello_attention", hello_attention, true, true}};
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) { return headlight::bench::run_suite("engine", headlight::bench::cases(), argc, argv); }
