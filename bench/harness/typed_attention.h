// Attention over operands of 16 bits as a case, beside the same in float32.
#pragma once

#include <cstdint>

#include "harness/case.h"
#include "headlight/attention.h"

namespace headlight::bench {

struct TypedAttention {
  std::int64_t query_length;
  std::int64_t key_length;
  std::int64_t heads;
  std::int64_t key_value_heads;
  std::int64_t head_dim;
  bool by_head = false;           // [B, H, L, D], else [B, L, H, D]
  bool bound_by_reading = false;  // rather than by arithmetic
  Causal causal = Causal::none;
};

// All four operands of that type, bfloat16 or float16. Peer: headlight over float32.
[[nodiscard]] Work typed_attention_work(const TypedAttention& shape, NumberType type, const CaseContext& context);

// The gradients of such a call, of all operands, and the call before where it is asked for. Peer: the same over
// float32.
[[nodiscard]] Work typed_backward_work(const TypedAttention& shape, NumberType type, bool with_forward,
                                       const CaseContext& context);

}  // namespace headlight::bench
