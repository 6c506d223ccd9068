// Where somebody else is faster, and what was to be reached.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/rows.h"

namespace headlight::bench::report {

struct Loss {
  const Row* row;
  const PeerFigures* peer;
};

// Every row in which somebody is faster by more than 1 %, the noise of paired times, with the fastest; the greatest
// loss first. headlight's own unfused route counts like anybody else, beside the fastest of the others.
[[nodiscard]] std::vector<Loss> losses_of(const Measured& measured);

// How far rows of another build of headlight lie from this one.
struct BuildComparison {
  std::string name;
  std::size_t rows = 0;
  double median = 1;            // its time over ours
  std::vector<Loss> differing;  // by more than 3 % either way, beyond which a difference wants a reason
};

[[nodiscard]] std::vector<BuildComparison> build_comparisons(const Measured& measured);

// One thing to be reached in a row, and what was.
struct GoalResult {
  const Row* row;
  std::string wanted;   // "≥ 95 % of peak"
  std::string reached;  // "91.2 %"
  bool met;
};

// Goals (bench/goals.json): a list of {"cases": [full names], "one": {…}, "all": {…}} for one thread and for more, each
// with some of
//   "peak_share", "read_share"       at least
//   "seconds", "bytes", "busy_share" at most
//   "speedup"                        at least so many times as fast as the same row of one thread
//   "against": {"OpenBLAS": 1.1}     at least so many times as fast; "*": as every peer but headlight's own routes
// for the best instruction set; "either": true when one of several is enough. Of a lesser instruction set the peak's
// share alone is asked, six points lower. What was not measured is left out.
[[nodiscard]] std::vector<GoalResult> goal_results(const nlohmann::json& goals, const Measured& measured);

}  // namespace headlight::bench::report
