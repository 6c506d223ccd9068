#include "ops/attention_backward/large_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/attention/row_scores.h"
#include "ops/rows/typed.h"

namespace headlight::ops {

LargeRow large_row(const BackwardCall& call, const AttentionSequence& sequence, std::int64_t sample, std::int64_t head,
                   std::int64_t row) noexcept {
  const IntervalRule rule(call.options, sequence);
  const std::int64_t query = sequence.first_query + row;
  const RowScores scores(call.options, call.modifiers, call.keys,
                         {.query = operand_at(call.operands.query, sample, query, head),
                          .head_dim = call.sizes.head_dim,
                          .sample = sample,
                          .head = head,
                          .key_value_head = head / call.sizes.group,
                          .row = query,
                          .position = sequence.first_key + rule.position(row)});
  const KeyInterval interval = rule(row);
  float sink = -std::numeric_limits<float>::infinity();
  if (!call.options.sinks.empty()) sink = call.options.sinks[static_cast<std::size_t>(head)];
  const double of_sink = sink_in_log2(sink);
  auto maximum = static_cast<float>(of_sink);
  for (std::int64_t j = sequence.first_key + interval.begin; j < sequence.first_key + interval.end; ++j) {
    if (scores.sees(j)) maximum = std::max(maximum, scores(j));
  }
  double sum = std::exp2(of_sink - static_cast<double>(maximum));
  for (std::int64_t j = sequence.first_key + interval.begin; j < sequence.first_key + interval.end; ++j) {
    if (scores.sees(j)) sum += std::exp2(static_cast<double>(scores(j)) - static_cast<double>(maximum));
  }
  return {maximum, static_cast<float>(std::log2(sum))};
}

}  // namespace headlight::ops
