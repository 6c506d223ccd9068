// Walks over tiles of one head beside the one that makes the gradients of keys and values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/attention_backward/block.h"
#include "runtime/cancellation.h"

namespace headlight::ops {

struct Range {
  std::int64_t first;
  std::int64_t last;
};

// What of a range lies in a sequence of so many rows or keys, counted from its first.
[[nodiscard]] inline Range within(const Range& range, std::int64_t first, std::int64_t count) noexcept {
  return {std::max<std::int64_t>(range.first - first, 0), std::min(range.last - first, count)};
}

// f(tile, first row, first key), both counted in the tensors, for all tiles of one head of one sequence that have some
// of those rows and keys of the sequence; `tile` is ready for float_score_gradients(), of scores behind the cap.
template <class Function>
void for_each_tile(const BackwardCall& call, int worker, std::int64_t sample, std::int64_t head,
                   const AttentionSequence& sequence, const Range& rows, const Range& keys,
                   const Function& f) noexcept {
  const BackwardPlan& plan = call.plan;
  if (rows.first >= rows.last) return;
  // Dropout counts keys by four: up to three of those before may come along.
  for (std::int64_t key = keys.first / 4 * 4; key < keys.last; key += plan.key_block) {
    BackwardBlock block(call, worker, sample, head / call.sizes.group, sequence, key,
                        std::min(plan.key_block, keys.last - key));
    block.tile().cap_derivatives = nullptr;  // what is added is added behind the cap
    const RowInterval seen = block.rows();
    const std::int64_t last = std::min(rows.last, seen.last);
    for (std::int64_t row = std::max(rows.first, seen.first); row < last; row += plan.query_block) {
      if (runtime::is_cancelled()) return;
      if (!block.take_rows(head, row, std::min(plan.query_block, last - row))) continue;
      f(block.tile(), sequence.first_query + row, sequence.first_key + key);
    }
  }
}

}  // namespace headlight::ops
