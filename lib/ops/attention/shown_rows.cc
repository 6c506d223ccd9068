#include "ops/attention/shown_rows.h"

namespace headlight::ops {

void find_intervals(const AttentionCall& call, int worker, const ShownRows& rows) noexcept {
  auto* intervals = part_of(call, worker, call.plan.intervals);
  for (std::int64_t r = 0; r < rows.count(); ++r) {
    const std::int64_t query = rows.query(r);
    const AttentionSequence sequence = call.sequences(rows.sample, call.sequences.of_query(query));
    intervals[r] = {};
    if (query - sequence.first_query >= sequence.queries) continue;
    intervals[r] = IntervalRule(call.options, sequence)(query - sequence.first_query);
    intervals[r].begin += sequence.first_key;
    intervals[r].end += sequence.first_key;
  }
}

void take_head(const AttentionCall& call, int worker, const ShownRows& rows, std::int64_t head) noexcept {
  const std::int64_t head_dim = call.sizes.head_dim;
  auto* queries = part_of(call, worker, call.plan.query);
  const RowModifiers modifiers = row_modifiers(call, worker);
  for (std::int64_t r = 0; r < rows.count(); ++r) {
    const std::int64_t query = rows.query(r);
    call.kernels.copy_rows(operand_at(call.query, rows.sample, query, head), call.scale.query_factor, 1, head_dim,
                           queries + r * call.plan.key_words);
    const AttentionSequence sequence = call.sequences(rows.sample, call.sequences.of_query(query));
    modifiers.set(call.options, r, rows.sample, head, query, position_of(call.options, sequence, query));
  }
}

}  // namespace headlight::ops
