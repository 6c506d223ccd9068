#include "harness/paired_timing.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>

#include "harness/clock.h"
#include "harness/statistics.h"

namespace headlight::bench {
namespace {

double time_once(const std::function<void()>& run) {
  const auto start = Clock::now();
  run();
  return seconds_since(start);
}

// From one untimed call, which is enough for long ones, and two more.
Portion measured_portion(const std::function<void()>& run) {
  const double first = time_once(run);
  if (first > 20e-3) return portion_of(first);
  return portion_of(std::min(time_once(run), time_once(run)));
}

// A core that has just idled runs some percent faster for a while: not to be taken for what it can do at work.
void warm_clock(const std::vector<std::function<double()>>& yardsticks, const Sampling& sampling) {
  if (sampling.settle_seconds == 0 || yardsticks.empty()) return;
  for (const auto start = Clock::now(); seconds_since(start) < 1.5e-3;) yardsticks.front()();
}

void add_round(const std::function<void()>& run, const Portion& portion, Times& times) {
  if (portion.warm_up) run();
  std::vector<double> calls;
  for (int call = 0; call < portion.calls; ++call) {
    const auto start = Clock::now();
    for (int repeat = 0; repeat < portion.inner; ++repeat) run();
    calls.push_back(seconds_since(start) / portion.inner);
  }
  const double best = least(calls);
  times.best = times.rounds.empty() ? best : std::min(times.best, best);
  times.rounds.push_back(median(calls));
}

void settle(const Sampling& sampling) {
  if (sampling.settle_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(sampling.settle_seconds));
}

}  // namespace

double Times::median() const { return bench::median(rounds); }

Portion portion_of(double seconds_a_call) {
  // A call of some milliseconds needs no company, and would not notice a sleeping worker or a cold cache.
  constexpr double kLong = 2e-3;
  constexpr double kPortion = 300e-6;
  constexpr double kShortest = 5e-6;
  Portion portion;
  if (seconds_a_call >= kLong) return {1, 1, false};
  if (seconds_a_call < kShortest)
    portion.inner = static_cast<int>(std::min(1000.0, kShortest / std::max(seconds_a_call, 1e-9))) + 1;
  portion.calls = static_cast<int>(std::clamp(kPortion / (seconds_a_call * portion.inner), 1.0, 40.0));
  return portion;
}

PairedTimes measure_paired(const std::function<void()>& ours, const std::vector<std::function<void()>>& others,
                           const std::vector<std::function<double()>>& yardsticks, const Sampling& sampling) {
  PairedTimes result;
  result.others.resize(others.size());
  result.yardsticks.resize(yardsticks.size());
  std::vector<Portion> portions;
  for (const auto& other : others) portions.push_back(measured_portion(other));
  settle(sampling);
  const Portion ours_portion = measured_portion(ours);

  const auto start = Clock::now();
  for (int round = 0; round < sampling.most_rounds; ++round) {
    const double elapsed = seconds_since(start);
    if (round >= sampling.least_rounds && elapsed >= sampling.seconds) break;
    if (round > 0 && elapsed >= sampling.most_seconds) break;
    if (!others.empty()) warm_clock(yardsticks, sampling);
    std::vector<double> before;
    for (const auto& yardstick : yardsticks) before.push_back(yardstick());
    add_round(ours, ours_portion, result.ours);
    for (std::size_t i = 0; i < yardsticks.size(); ++i)
      result.yardsticks[i].push_back((before[i] + yardsticks[i]()) / 2);
    for (std::size_t i = 0; i < others.size(); ++i) {
      add_round(others[i], portions[i], result.others[i]);
      settle(sampling);
    }
  }
  return result;
}

}  // namespace headlight::bench
