// Rows whose scores are so large that their log-sum-exp, one float, does not tell their probabilities.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/attention_backward/block.h"

namespace headlight::ops {

// A sink in units of log 2, and a log-sum-exp rounded; what is finite stays a finite float.
[[nodiscard]] inline double sink_in_log2(float sink) noexcept {
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  const double in_log2 = static_cast<double>(sink) * std::numbers::log2e;
  return std::isinf(sink) ? in_log2 : std::clamp(in_log2, -kLargest, kLargest);
}
[[nodiscard]] inline float in_log2(float log_sum_exp) noexcept { return static_cast<float>(sink_in_log2(log_sum_exp)); }

// From 2²⁴ units of log 2 on, floats lie a unit or more apart: the log-sum-exp of a row whose every key carries a bias
// of −FLT_MAX says nothing of how many keys there are.
[[nodiscard]] inline bool is_large_row(float log_sum_exp_in_log2) noexcept {
  return log_sum_exp_in_log2 >= 0x1p24f || log_sum_exp_in_log2 <= -0x1p24f;
}

// The greatest score m in units of log 2, and log₂ Σ_j exp2(score_j − m), of a row of a query head: by one walk over
// its keys, each time that a block of keys meets it. Slow, and rare.
struct LargeRow {
  float maximum;
  float log_sum;
};
[[nodiscard]] LargeRow large_row(const BackwardCall& call, const AttentionSequence& sequence, std::int64_t sample,
                                 std::int64_t head, std::int64_t row) noexcept;

}  // namespace headlight::ops
