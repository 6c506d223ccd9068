// Scores in units of log 2, as the kernels count them.
#pragma once

#include "headlight/attention.h"

namespace headlight::ops {

// options.scale, or 1/√head_dim.
[[nodiscard]] double softmax_scale(const AttentionOptions& options, std::int64_t head_dim) noexcept;

// exp(scale · s) = exp2(exponent_scale · (query_factor · s)): exponent_scale > 0 and normal, as the kernels want it,
// query_factor −1, 0 or 1.
struct AttentionScale {
  float exponent_scale;
  float query_factor;
};
[[nodiscard]] AttentionScale scale_of(const AttentionOptions& options, std::int64_t head_dim) noexcept;

// The logarithm of Σ exp(score), from a row's maximum in units of log 2 and its Σ exp2(score − maximum); −∞ for 0.
[[nodiscard]] float log_sum_exp_of(float maximum, float sum) noexcept;

}  // namespace headlight::ops
