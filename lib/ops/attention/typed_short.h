// Short calls over operands of 16 bits: each head is widened on the stack, or becomes words of pairs and their panels.
#pragma once

#include "kernels/attention/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/key_source.h"
#include "ops/attention/operands.h"
#include "ops/attention/short_rows.h"

namespace headlight::ops {

// Whether the head of any sequence fits there. (Beyond, float32's short way gains little over the others.)
[[nodiscard]] bool fits_on_stack(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept;

struct TypedShortAttention {
  const AttentionOperands& operands;
  KeySource keys;
  const AttentionOptions& options;
  const AttentionSizes& sizes;
  const kernels::AttentionKernels& kernels;
  float exponent_scale;

  // One head of some rows.
  void attend(const ShortRows& group, std::int64_t head) const noexcept;
};

}  // namespace headlight::ops
