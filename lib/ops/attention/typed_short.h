// Short calls over operands of 16 bits: each head is widened, or becomes words of pairs and their panels, or is read
// where it lies.
#pragma once

#include "kernels/attention/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/key_source.h"
#include "ops/attention/operands.h"
#include "ops/attention/short_rows.h"

namespace headlight::ops {

// Whether a head of any sequence stays in the first cache level. (Beyond, float32's short way gains little over the
// others.)
[[nodiscard]] bool stays_near(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept;

// Floats that one head takes, of operands and out that are all widened.
[[nodiscard]] std::int64_t typed_short_floats(const kernels::AttentionKernels& kernels,
                                              const AttentionSizes& sizes) noexcept;

struct TypedShortAttention {
  const AttentionOperands& operands;
  KeySource keys;
  const AttentionOptions& options;
  const AttentionSizes& sizes;
  const kernels::AttentionKernels& kernels;
  float exponent_scale;

  // As those of ShortAttention.
  [[nodiscard]] std::int64_t floats() const noexcept { return typed_short_floats(kernels, sizes); }
  void attend(const ShortRows& group, std::int64_t head, float* room) const noexcept;
};

}  // namespace headlight::ops
