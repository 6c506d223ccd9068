// The options of attention, which layers take too, and what layers show of it.
#pragma once

#include "headlight/attention.h"
#include "headlight/c/layers.h"
#include "headlight/layers/multi_head_attention.h"

namespace headlight::c {

[[nodiscard]] Probabilities probabilities(const char* operation, const headlight_probabilities* given);
[[nodiscard]] AttentionOptions attention_options(const char* operation, const headlight_attention_options* given);
// Those of a decoder layer's self-attention: causal, top-left, where nothing is given.
[[nodiscard]] AttentionOptions decoder_self_options(const char* operation, const headlight_attention_options* given);
[[nodiscard]] HeadAccess head_access(const char* operation, const headlight_head_access* given);

}  // namespace headlight::c
