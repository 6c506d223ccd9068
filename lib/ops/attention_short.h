// Attention over so few keys that they fit into one vector: no plan, no scratch memory, no state.
#pragma once

#include "headlight/attention.h"
#include "kernels/attention_kernels.h"
#include "ops/attention_check.h"

namespace headlight::ops {

// scale = query_factor · exponent_scale / log2(e), query_factor −1, 0 or 1: the kernels want a positive factor.
struct AttentionScale {
  float exponent_scale;
  float query_factor;
};
// exp(scale · s) = exp2(exponent_scale · (query_factor · s)), exponent_scale > 0.
[[nodiscard]] AttentionScale scale_of(const AttentionOptions& options, std::int64_t head_dim) noexcept;

// Whether attend_short() serves this call, and is the fastest that does.
[[nodiscard]] bool is_short(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                            const AttentionOptions& options, const AttentionScale& scale) noexcept;

struct ShortAttention {
  View<const float, 4> query;
  View<const float, 4> key;
  View<const float, 4> value;
  View<float, 4> out;
  const AttentionOptions& options;
  const AttentionSizes& sizes;
  const kernels::AttentionKernels& kernels;
  float exponent_scale;
};
void attend_short(Engine& engine, const ShortAttention& call) noexcept;

// The logarithm of Σ exp(score), from a row's maximum in units of log 2 and its Σ exp2(score − maximum); −∞ for 0.
[[nodiscard]] float log_sum_exp_of(float maximum, float sum) noexcept;

}  // namespace headlight::ops
