// Rows whose scores are so large that their log-sum-exp, one float, does not tell their probabilities.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "headlight/engine.h"
#include "ops/attention_backward/block.h"

namespace headlight::ops {

// A log-sum-exp or a sink in units of log 2, rounded; what is finite stays finite.
[[nodiscard]] inline float in_log2(float number) noexcept {
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  const double in_log2 = static_cast<double>(number) * std::numbers::log2e;
  return static_cast<float>(std::isinf(number) ? in_log2 : std::clamp(in_log2, -kLargest, kLargest));
}

// From 2²⁴ units of log 2 on, floats lie a unit or more apart: the log-sum-exp of a row whose every key carries a bias
// of −FLT_MAX says nothing of how many keys there are.
[[nodiscard]] inline bool is_large_row(float log_sum_exp_in_log2) noexcept {
  return log_sum_exp_in_log2 >= 0x1p24f || log_sum_exp_in_log2 <= -0x1p24f;
}
// The same of a log-sum-exp as attention() gives it: −inf is a row that sees nothing.
[[nodiscard]] inline bool is_of_large_row(float log_sum_exp) noexcept {
  if (std::abs(log_sum_exp) < 0x1p23f) return false;  // less than 2²⁴ log 2: nearly all rows, which are read one by one
  return log_sum_exp != -std::numeric_limits<float>::infinity() && is_large_row(in_log2(log_sum_exp));
}
[[nodiscard]] bool has_large_rows(const View<const float, 3>& log_sum_exp) noexcept;

// Sets the call's running sums of all such rows, by one pass over the keys of each.
void sum_large_rows(Engine& engine, const BackwardCall& call) noexcept;

}  // namespace headlight::ops
