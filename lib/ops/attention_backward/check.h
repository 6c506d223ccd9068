// What attention_backward() refuses.
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/attention/check.h"
#include "ops/attention_backward/operands.h"

namespace headlight::ops {

// Throws std::invalid_argument("operation: …") naming the first argument that does not fit.
AttentionSizes check_attention_backward(std::string_view operation, const AttentionBackwardOperands& operands,
                                        const TypedAttentionGradients& gradients, const AttentionOptions& options);

// The same for a way back that has neither `out` nor `log_sum_exp`.
AttentionSizes check_attention_backward_inputs(std::string_view operation, View<const float, 4> query,
                                               View<const float, 4> key, View<const float, 4> value,
                                               View<const float, 4> out_gradient, const AttentionGradients& gradients,
                                               const AttentionOptions& options);

// Of a call with such operands and options, whose sizes those are: sums by distance (row_sums.h) of that shape, apart
// from all that is read.
void check_distances(std::string_view operation, const AttentionSizes& sizes, const AttentionBackwardOperands& operands,
                     const AttentionOptions& options, std::int64_t sums, const View<float, 3>& distances);

// Whether every gradient is left out or without elements. Sizes may then count 2^30 of nothing.
template <class Gradients>
[[nodiscard]] bool asks_for_nothing(const Gradients& gradients) noexcept {
  return is_empty(gradients.query) && is_empty(gradients.key) && is_empty(gradients.value) &&
         is_empty(gradients.bias) && is_empty(gradients.sinks);
}

}  // namespace headlight::ops
