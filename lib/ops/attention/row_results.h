// What becomes of a query row: the state that it begins with, its place in `out`, and what is kept beside it.
#pragma once

#include <cstdint>
#include <limits>

#include "ops/attention/rows.h"

namespace headlight::ops {

// Where row `row` of a (sample, key/value head) lies in the tensors.
struct RowPlace {
  std::int64_t query;
  std::int64_t head;
};
inline RowPlace place_of(const AttentionCall& call, std::int64_t key_value_head, std::int64_t row) noexcept {
  const std::int64_t group = call.sizes.group;
  if (group == 1) return {row, key_value_head};
  return {row / group, key_value_head * group + row % group};
}

// The state of a row that has seen no key: maximum in units of log 2, and Σ exp2(score − maximum). A sink is a key
// without a value.
struct SinkState {
  float maximum = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
};
[[nodiscard]] SinkState sink_state(const AttentionCall& call, std::int64_t head) noexcept;
void begin_with_sink(const AttentionCall& call, std::int64_t head, const kernels::AttentionState& state) noexcept;

// Whether record_row() keeps anything.
[[nodiscard]] inline bool wants_row_sums(const AttentionCall& call) noexcept {
  const Probabilities& probabilities = call.options.probabilities;
  return call.options.log_sum_exp || probabilities.per_head || probabilities.averaged;
}
// What is kept of a row beside its output: maximum in units of log 2, sum of exp2(score − maximum).
void record_row(const AttentionCall& call, std::int64_t sample, const RowPlace& place, float maximum,
                float sum) noexcept;
// Where a query row's maximum and sum are kept, of `row_maximum` and `row_sum`; −1 where nobody asked for it.
[[nodiscard]] std::int64_t saved_row(const AttentionCall& call, std::int64_t sample, std::int64_t head,
                                     std::int64_t query) noexcept;

// Divides a row's state into its place in `out` and records its log-sum-exp and what probabilities need.
void finish_row(const AttentionCall& call, std::int64_t sample, const RowPlace& place,
                const kernels::AttentionState& state) noexcept;
// The same for a row that sees no key, and for one that is padding and has no sink either.
void finish_empty_row(const AttentionCall& call, std::int64_t sample, const RowPlace& place) noexcept;
void finish_padding(const AttentionCall& call, std::int64_t sample, const RowPlace& place) noexcept;

}  // namespace headlight::ops
