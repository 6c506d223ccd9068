#include "harness/paired_timing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "harness/counters.h"
#include "harness/crew.h"

namespace headlight::bench::paired_timing_test {

TEST(PairedTiming, EveryRoundRunsAllInTurn) {
  std::string order;
  const Sampling sampling{.seconds = 0, .least_rounds = 3};
  const auto say = [&](char letter) {
    return [&order, letter] {
      if (order.empty() || order.back() != letter) order += letter;
    };
  };
  const auto yardstick = [&] {
    say('y')();
    return 2.0;
  };
  const PairedTimes times = measure_paired(say('o'), {say('a'), say('b')}, {yardstick}, sampling);
  EXPECT_EQ(order, "aboyoyabyoyabyoyab");
  EXPECT_EQ(times.ours.rounds.size(), 3u);
  ASSERT_EQ(times.others.size(), 2u);
  EXPECT_EQ(times.others[1].rounds.size(), 3u);
  ASSERT_EQ(times.yardsticks.size(), 1u);
  EXPECT_EQ(times.yardsticks[0], std::vector<double>(3, 2.0));
  EXPECT_LE(times.ours.best, times.ours.median());
}

TEST(PairedTiming, ShortCallsAreTimedTogether) {
  EXPECT_GE(portion_of(100e-9).inner, 50);
  EXPECT_EQ(portion_of(20e-6).inner, 1);
  EXPECT_GT(portion_of(20e-6).calls, 1);
  EXPECT_EQ(portion_of(0.1).calls, 1);
  EXPECT_FALSE(portion_of(0.1).warm_up);
  EXPECT_GE(portion_of(0).calls, 1);
}

TEST(PairedTiming, CountersAreMediansOfPairs) {
  Work work;
  work.run = [] {};
  work.operations = 100e9;
  const std::vector<float> memory(250);
  work.reads = {memory};
  work.peers = {{"Other", "1.0", [] {}}};
  PairedTimes times;
  times.ours.rounds = {1, 2, 4};
  times.ours.best = 1;
  times.others = {{{2, 2, 12}, 2}};
  times.yardsticks = {{200, 100, 50}, {2e-6, 1e-6, 0.5e-6}};
  const Counters counters = counters_of(work, times, {true, true});
  EXPECT_EQ(counters.at("gflops_best"), 100);
  EXPECT_EQ(counters.at("gflops_median"), 50);
  EXPECT_EQ(counters.at("peak_share"), 0.5);
  EXPECT_NEAR(counters.at("read_share"), 0.5, 1e-12);
  EXPECT_EQ(counters.at("peer|Other|1.0|ratio"), 0.5);
  EXPECT_EQ(counters.at("peer|Other|1.0|seconds_best"), 2);
  EXPECT_EQ(counters.at("rounds"), 3);
}

TEST(Crew, RunsEveryThreadOnceACall) {
  Crew crew(3);
  std::atomic<int> seen[3] = {};
  for (int call = 0; call < 20; ++call) crew.run([&](int thread) { ++seen[thread]; });
  for (const std::atomic<int>& one : seen) EXPECT_EQ(one, 20);
}

}  // namespace headlight::bench::paired_timing_test
