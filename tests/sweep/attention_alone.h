// A row of a call as a call of its own.
#pragma once

#include <optional>
#include <vector>

#include "support/attention_case.h"

namespace headlight::sweep {

struct RowAlone {
  View<const float, 4> query, key, value;
  AttentionOptions options;
};

// Row i of sample b, on the keys of its sequence, at the position where it stood: its bits are those of the whole call.
// None for padding, and for what one row cannot say: dropout, which counts rows, and a causal mask that is aligned
// otherwise than windows are.
[[nodiscard]] std::optional<RowAlone> row_alone(const test::AttentionCase& c, const test::AttentionInputs& in,
                                                std::int64_t b, std::int64_t i);

}  // namespace headlight::sweep
