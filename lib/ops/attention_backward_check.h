// What attention_backward() refuses.
#pragma once

#include <string_view>

#include "headlight/attention_backward.h"
#include "ops/attention_check.h"
#include "runtime/inner_api.h"

namespace headlight::ops {

// Throws std::invalid_argument("operation: …") naming the first argument that does not fit.
AttentionSizes check_attention_backward(std::string_view operation, View<const float, 4> query,
                                        View<const float, 4> key, View<const float, 4> value, View<const float, 4> out,
                                        View<const float, 3> log_sum_exp, View<const float, 4> out_gradient,
                                        const AttentionGradients& gradients, const AttentionOptions& options);

// The same for a way back that has neither `out` nor `log_sum_exp`.
HEADLIGHT_INNER_API AttentionSizes check_attention_backward_inputs(
    std::string_view operation, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
    View<const float, 4> out_gradient, const AttentionGradients& gradients, const AttentionOptions& options);

// Whether every gradient is left out or without elements. Sizes may then count 2^30 of nothing.
[[nodiscard]] inline bool asks_for_nothing(const AttentionGradients& gradients) noexcept {
  return gradients.query.size() == 0 && gradients.key.size() == 0 && gradients.value.size() == 0 &&
         gradients.bias.size() == 0 && gradients.sinks.size() == 0;
}

}  // namespace headlight::ops
