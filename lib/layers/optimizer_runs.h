// What an optimiser over all parameters and one over a part of them have in common.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "headlight/optimizer.h"
#include "ops/check.h"

namespace headlight::layers {

// Elements of a task: 64 KiB a tensor, long against handing a task out. Squares of gradients are added run by run.
inline constexpr std::size_t kOptimizerRun = 16384;

inline void check_not_negative(std::string_view name, std::string_view option, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  ops::fail(name, option, " is ", value, ", expected a finite number ≥ 0");
}

inline void check_step(std::string_view name, const StepOptions& options) {
  check_not_negative(name, "learning_rate", options.learning_rate);
  check_not_negative(name, "max_norm", options.max_norm);
}

// From the sums of squares of all runs; name_of(run) is the name of the run's parameter.
template <class NameOf>
[[nodiscard]] StepReport report_of(std::span<const double> sums, const NameOf& name_of) {
  StepReport report;
  double squares = 0;
  for (std::size_t run = 0; run < sums.size(); ++run) {
    if (!std::isfinite(sums[run]) && report.all_finite) {
      report.all_finite = false;
      report.non_finite = name_of(run);
    }
    squares += sums[run];
  }
  report.gradient_norm = std::sqrt(squares);
  return report;
}

}  // namespace headlight::layers
