// The options of attention, which layers take too.
#pragma once

#include "headlight/attention.h"
#include "headlight/c/attention.h"

namespace headlight::c {

[[nodiscard]] AttentionOptions attention_options(const char* operation, const headlight_attention_options* given);

}  // namespace headlight::c
