// Attention over so few keys that the scores of a few rows fit on the stack: no plan, no scratch memory, no state.
#pragma once

#include "headlight/attention.h"
#include "kernels/attention/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/key_source.h"
#include "ops/attention/scale.h"

namespace headlight::ops {

// Whether attend_short() serves this call, and is the fastest that does.
[[nodiscard]] bool is_short(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                            const AttentionOptions& options, const AttentionScale& scale) noexcept;

struct ShortRows;

struct ShortAttention {
  const View<const float, 4>& query;
  KeySource keys;
  const View<float, 4>& out;
  const AttentionOptions& options;
  const AttentionSizes& sizes;
  const kernels::AttentionKernels& kernels;
  float exponent_scale;

  // One head of some rows.
  void attend(const ShortRows& group, std::int64_t head) const noexcept;
};
void attend_short(Engine& engine, const ShortAttention& call) noexcept;

}  // namespace headlight::ops
