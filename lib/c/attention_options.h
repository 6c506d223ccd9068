// The options of attention, which layers take too, and what layers show of it.
#pragma once

#include "c/handles.h"
#include "headlight/attention_backward.h"
#include "headlight/c/attention.h"
#include "headlight/c/layers.h"
#include "headlight/layers/multi_head_attention.h"

namespace headlight::c {

[[nodiscard]] AttentionShape attention_shape(const char* operation, const char* argument,
                                             const headlight_attention_shape* given);
[[nodiscard]] Probabilities probabilities(const char* operation, const headlight_probabilities* given);
[[nodiscard]] AttentionOptions attention_options(const char* operation, const headlight_attention_options* given);
[[nodiscard]] TypedAttentionGradients attention_gradients(const char* operation,
                                                          const headlight_attention_gradients* given);
// Those of a decoder layer's self-attention: causal, top-left, where nothing is given.
[[nodiscard]] AttentionOptions decoder_self_options(const char* operation, const headlight_attention_options* given);
[[nodiscard]] HeadAccess head_access(const char* operation, const headlight_head_access* given);

}  // namespace headlight::c
