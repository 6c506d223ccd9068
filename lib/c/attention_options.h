// The options of attention, which layers take too, and what layers show of it.
#pragma once

#include "c/handles.h"
#include "headlight/c/attention.h"
#include "headlight/c/layers.h"
#include "headlight/layers/multi_head_attention.h"
#include "headlight/typed_attention_backward.h"
#include "runtime/inner_api.h"

namespace headlight::c {

[[nodiscard]] AttentionShape attention_shape(const char* operation, const char* argument,
                                             const headlight_attention_shape* given);
[[nodiscard]] Probabilities probabilities(const char* operation, const headlight_probabilities* given);
// Refuses scales of keys and values, which attention() alone takes, and a gradient by log_sum_exp, which
// attention_backward() alone does.
[[nodiscard]] HEADLIGHT_INNER_API AttentionOptions attention_options(const char* operation,
                                                                     const headlight_attention_options* given);
// The same for those two, whose caller reads from the fields what stands beside the options of C++; and what each of
// them takes is not refused then.
using AttentionFields = Fields<headlight_attention_options>;
[[nodiscard]] AttentionOptions attention_options(const char* operation, const AttentionFields& fields);
[[nodiscard]] AttentionOptions attention_options_beside_scales(const char* operation, const AttentionFields& fields);
[[nodiscard]] AttentionOptions attention_backward_options(const char* operation, const AttentionFields& fields);
[[nodiscard]] HEADLIGHT_INNER_API AttentionGradients attention_gradients(const char* operation,
                                                                         const headlight_attention_gradients* given);
// The same of any types.
[[nodiscard]] TypedAttentionGradients typed_attention_gradients(const char* operation,
                                                                const headlight_attention_gradients* given);
// attention(), or another function of its kind, over tensors of C. Errors name `operation`.
template <class Function>
headlight_status attend(const char* operation, const Function& function, headlight_engine* engine,
                        const headlight_tensor* query, const headlight_tensor* key, const headlight_tensor* value,
                        const headlight_tensor* out, const headlight_attention_options* options,
                        headlight_error* error) noexcept {
  return call(operation, engine, error, [&](Engine& on) {
    function(on, view<const float, 4>(operation, "query", query), view<const float, 4>(operation, "key", key),
             view<const float, 4>(operation, "value", value), view<float, 4>(operation, "out", out),
             attention_options(operation, options));
  });
}

// Those of a decoder layer's self-attention: causal, top-left, where nothing is given.
[[nodiscard]] AttentionOptions decoder_self_options(const char* operation, const headlight_attention_options* given);
[[nodiscard]] HeadAccess head_access(const char* operation, const headlight_head_access* given);

}  // namespace headlight::c
