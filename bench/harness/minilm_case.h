// The whole of all-MiniLM-L6-v2 (6 layers, width 384, 12 heads of 32) as a case, from token ids to hidden states: its
// published weights where --model finds them, else random ones of that shape, which cost the same.
#pragma once

#include <cstdint>

#include "harness/case.h"

namespace headlight::bench {

struct TokenBatch {
  std::int64_t sequences, tokens;
};

// Products in that type; in a narrower one than float32, beside the same in float32.
[[nodiscard]] Work minilm_work(const TokenBatch& batch, const CaseContext& context,
                               NumberType precision = NumberType::float32);

}  // namespace headlight::bench
