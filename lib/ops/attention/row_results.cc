#include "ops/attention/row_results.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace headlight::ops {
namespace {

// Zeros are the same bits in every type.
void clear_row(const AttentionCall& call, std::int64_t sample, const RowPlace& place) noexcept {
  std::memset(row_at(call.out, sample, place.query, place.head), 0,
              static_cast<std::size_t>(call.sizes.value_dim) * bytes_of(call.out.type));
}

}  // namespace

std::int64_t saved_row(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t query) noexcept {
  const AttentionPlan& plan = call.plan;
  std::int64_t at = query;
  if (!plan.saves_all_rows) {
    const auto* const asked = part_of(call, plan.asked_rows);
    const auto* const found = std::lower_bound(asked, asked + plan.saved_rows, query);
    if (found == asked + plan.saved_rows || *found != query) return -1;
    at = found - asked;
  }
  return (sample * call.sizes.query_heads + head) * plan.saved_rows + at;
}

void record_row(const AttentionCall& call, std::int64_t sample, const RowPlace& place, float maximum,
                float sum) noexcept {
  if (call.options.log_sum_exp) {
    call.options.log_sum_exp(sample, place.head, place.query) = log_sum_exp_of(maximum, sum);
  }
  if (call.options.probabilities.per_head || call.options.probabilities.averaged) {
    const std::int64_t row = saved_row(call, sample, place.head, place.query);
    if (row < 0) return;
    part_of(call, call.plan.row_maximum)[row] = sum == 0.0f ? 0.0f : maximum;
    part_of(call, call.plan.row_sum)[row] = sum;
  }
}

SinkState sink_state(const AttentionCall& call, std::int64_t head) noexcept {
  if (call.options.sinks.empty()) return {};
  const float sink = call.options.sinks[static_cast<std::size_t>(head)];
  if (std::isinf(sink)) return {sink, sink < 0 ? 0.0f : 1.0f};
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  const double maximum = static_cast<double>(sink) * std::numbers::log2e;
  return {static_cast<float>(std::isnan(maximum) ? maximum : std::clamp(maximum, -kLargest, kLargest)), 1.0f};
}

void finish_row(const AttentionCall& call, std::int64_t sample, const RowPlace& place,
                const kernels::AttentionState& state) noexcept {
  const float sum = call.kernels.finish(state, call.sizes.value_dim, call.out.type,
                                        row_at(call.out, sample, place.query, place.head));
  record_row(call, sample, place, *state.maximum, sum);
}

void finish_empty_row(const AttentionCall& call, std::int64_t sample, const RowPlace& place) noexcept {
  clear_row(call, sample, place);
  const SinkState sink = sink_state(call, place.head);
  record_row(call, sample, place, sink.maximum, sink.sum);
}

void finish_padding(const AttentionCall& call, std::int64_t sample, const RowPlace& place) noexcept {
  clear_row(call, sample, place);
  record_row(call, sample, place, 0.0f, 0.0f);
}

void begin_with_sink(const AttentionCall& call, std::int64_t head, const kernels::AttentionState& state) noexcept {
  const SinkState sink = sink_state(call, head);
  *state.maximum = sink.maximum;
  std::fill_n(state.sums, call.kernels.lanes, 0.0f);
  state.sums[0] = sink.sum;
  std::fill_n(state.out, call.plan.padded_value_dim, 0.0f);
}

}  // namespace headlight::ops
