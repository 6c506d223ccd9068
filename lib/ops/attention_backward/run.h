// What both ways into attention_backward() share: from checked operands, whose types the kernels know, to gradients.
#pragma once

#include <string_view>

#include "kernels/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention_backward/block.h"
#include "ops/attention_backward/operands.h"

namespace headlight::ops {

// Whether a gradient is given, of a type that its sums do not have.
[[nodiscard]] inline bool is_narrow(const MutableTypedView<4>& gradient) noexcept {
  return gradient && gradient.type != NumberType::float32;
}

// `operation` is who asks for the scratch memory.
void differentiate(Engine& engine, std::string_view operation, const AttentionBackwardOperands& operands,
                   const TypedAttentionGradients& gradients, const AttentionOptions& options,
                   const AttentionSizes& sizes, const kernels::AttentionKernels& kernels,
                   const kernels::AttentionBackwardKernels& backward, const RowSums& sums = {});

// What a row adds to minus the gradient of its sink: exp(sink − log-sum-exp) · δ, where its log-sum-exp tells that. A
// row that is padding has no sink, and one without a sink nothing for it.
[[nodiscard]] double sink_part(float sink, float log_sum_exp, float delta) noexcept;

// δ of every row; and what the sums of the query gradient begin with. They may lie where `out` does: rows are read
// before they are cleared.
void begin_rows(Engine& engine, const BackwardCall& call) noexcept;

// The sums of a query gradient of 16 bits, rounded to where it belongs.
void round_query_gradient(Engine& engine, const BackwardCall& call) noexcept;

}  // namespace headlight::ops
