// Attention of float32 queries over keys and values of int8 as a case, beside the same in float32.
#pragma once

#include "harness/case.h"
#include "harness/typed_attention.h"

namespace headlight::bench {

// Right where it has the bits of float32 over what keys and values hold. Peer: that call.
[[nodiscard]] Work cached_attention_work(const TypedAttention& shape, const CaseContext& context);

}  // namespace headlight::bench
