// Attention over so few keys that the scores of a few rows fit on the stack: no plan and no state.
#pragma once

#include <string_view>

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

  // What one head of some rows takes, and that head, in the room that attend_short_rows() gives.
  [[nodiscard]] std::int64_t floats() const noexcept;
  void attend(const ShortRows& group, std::int64_t head, float* room) const noexcept;
};
// What one such call borrows; and the most that one of these sizes does, whatever its operands are stored as and
// however they are cut into sequences.
[[nodiscard]] std::size_t short_call_bytes(const Engine& engine, const kernels::AttentionKernels& kernels,
                                           const AttentionSizes& sizes, const AttentionOptions& options) noexcept;
[[nodiscard]] std::size_t most_short_bytes(const Engine& engine, const kernels::AttentionKernels& kernels,
                                           const AttentionSizes& sizes) noexcept;
// The same of as many queries and keys or fewer.
[[nodiscard]] std::size_t short_bytes_up_to(const Engine& engine, const kernels::AttentionKernels& kernels,
                                            const AttentionSizes& sizes) noexcept;
// Throws OutOfMemory.
void attend_short(Engine& engine, std::string_view name, const ShortAttention& call);

}  // namespace headlight::ops
