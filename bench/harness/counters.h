// What a benchmark says about a case, by name: the words that suites write and reports read.
#pragma once

#include <map>
#include <string>

#include "harness/case.h"
#include "harness/paired_timing.h"

namespace headlight::bench {

// seconds_best, seconds_median          of one call; the median over rounds of each round's median
// rounds
// gflops_best, gflops_median            operations a second
// peak_gflops, peak_share               the median of the multiply-add peak around our calls; of the paired shares
// elements_per_ns, element_share        and the share of what the multiply-add units could do of them
// gbps_best, gbps_median                bytes that must be read, and those written, a second
// read_gbps, read_share                 likewise for the read bandwidth of the same memory; the nearer limit has the
//                                       greater share
// disturbed                             the share of the machine that others used meanwhile, when it is above 5 %
// peer|NAME|VERSION|seconds_best …      seconds_best, seconds_median, ratio: the median over rounds of ours / theirs
using Counters = std::map<std::string, double>;

// What the yardsticks were, in the order in which they were given to measure_paired().
struct Yardsticks {
  bool peak = false;
  bool read = false;
};

[[nodiscard]] Counters counters_of(const Work& work, const PairedTimes& times, const Yardsticks& yardsticks);

}  // namespace headlight::bench
