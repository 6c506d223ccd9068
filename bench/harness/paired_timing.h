// Timing in alternation: in every round the work, what it is compared with, and the yardsticks of the machine run one
// after another, and what is said of them is said of pairs from the same round. So a clock that moves, or a neighbour
// on the same host, falls on both sides of every ratio.
#pragma once

#include <functional>
#include <vector>

namespace headlight::bench {

struct Sampling {
  // The time that a case may take; rounds begin until it is over.
  double seconds = 0.5;
  int least_rounds = 5;
  // After that no further round begins, however few there were.
  double most_seconds = 5;
  int most_rounds = 1000;
  // Between contenders of several threads: their libraries' workers may spin for a while after the last call.
  double settle_seconds = 0;
};

// The times of one contender: seconds a call.
struct Times {
  std::vector<double> rounds;  // the median of each round's calls
  double best = 0;             // of all calls
  [[nodiscard]] double median() const;
};

struct PairedTimes {
  Times ours;
  std::vector<Times> others;
  // What each yardstick said around our calls of that round.
  std::vector<std::vector<double>> yardsticks;
};

// Calls of one contender that make up its part of a round: enough for a clock that ticks in tens of nanoseconds, and no
// more, so that a round stays short.
struct Portion {
  int calls = 1;  // each timed on its own
  int inner = 1;  // calls that are timed as one, where one is too short
  bool warm_up = true;
};
[[nodiscard]] Portion portion_of(double seconds_a_call);

// `ours` and each of `others` run before the first round, to see how long they take. A yardstick is read before and
// after our calls, and counts with the mean of the two.
[[nodiscard]] PairedTimes measure_paired(const std::function<void()>& ours,
                                         const std::vector<std::function<void()>>& others,
                                         const std::vector<std::function<double()>>& yardsticks,
                                         const Sampling& sampling);

}  // namespace headlight::bench
