// Rows whose scores are so large that their log-sum-exp, one float, does not tell their probabilities.
#pragma once

#include "ops/attention_backward/block.h"

namespace headlight::ops {

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
