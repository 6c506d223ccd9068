// A short call, sequence by sequence: what does not depend on how its operands are stored.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/masks.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {

// What a call keeps on its stack at most: the queries of one head, one to a lane.
inline constexpr std::int64_t kMaxShortHeadDim = 128;
inline constexpr std::int64_t kMaxShortRows = 32;

// Rows of one sample that begin together, and what they see.
struct ShortRows {
  std::int64_t sample;
  std::int64_t first;  // in the tensor, as first_key
  std::int64_t rows;
  std::int64_t first_key;
  std::int64_t keys;
  bool all_seen;
  std::int32_t begin[kMaxShortRows];
  std::int32_t end[kMaxShortRows];
};

template <class Call>
void find_intervals(const Call& call, const AttentionSequence& sequence, ShortRows& group) noexcept {
  const IntervalRule rule(call.options, sequence);
  const bool same = rule.same_for_all_rows();
  const KeyInterval all{0, sequence.keys};
  const std::int64_t keys = std::max<std::int64_t>(sequence.keys, 1);
  const std::int64_t first = group.first - sequence.first_query;
  const std::int64_t rows = group.rows;
  bool all_seen = true;
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyInterval seen = first + r >= sequence.queries ? KeyInterval{} : same ? all : rule(first + r);
    group.begin[r] = static_cast<std::int32_t>(seen.begin);
    group.end[r] = static_cast<std::int32_t>(seen.end);
    all_seen = all_seen && seen.begin == 0 && seen.end == keys;
  }
  group.keys = keys;
  group.all_seen = all_seen;
}

// Heads [first_head, last_head) of a sequence. A sample's rows past its length are padding, and end as zeros.
template <class Call>
void attend_sequence(const Call& call, std::int64_t sample, std::int64_t number, std::int64_t first_head,
                     std::int64_t last_head) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const AttentionSequence sequence =
      AttentionSequences(call.options, sizes.query_length, sizes.key_length)(sample, number);
  const std::int64_t last =
      call.options.query_offsets.empty() ? sizes.query_length : sequence.first_query + sequence.queries;
  ShortRows group;
  group.sample = sample;
  group.first_key = sequence.first_key;
  for (group.first = sequence.first_query; group.first < last; group.first += call.kernels.short_rows) {
    group.rows = std::min<std::int64_t>(call.kernels.short_rows, last - group.first);
    find_intervals(call, sequence, group);
    for (std::int64_t head = first_head; head < last_head; ++head) call.attend(group, head);
  }
}

// An order of magnitude, for whether other workers are worth waking.
template <class Call>
double short_nanoseconds(const Call& call, std::int64_t sequences) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const double heads = static_cast<double>(sizes.batch) * static_cast<double>(sizes.query_heads);
  const double keys = static_cast<double>(sizes.key_length) / static_cast<double>(sequences);
  const auto vectors =
      static_cast<double>(divide_up(divide_up(sizes.query_length, sequences), std::int64_t{call.kernels.lanes}));
  const double vector_products = keys * static_cast<double>(sizes.head_dim + sizes.value_dim);
  return heads * static_cast<double>(sequences) *
         (runtime::costs::kShortHead +
          vector_products * (runtime::costs::kShortProduct + runtime::costs::kShortProductOfVector * vectors));
}

// call.attend(rows, head) for all of them; call.options, call.sizes and call.kernels are those of the call.
template <class Call>
void attend_short_rows(Engine& engine, const Call& call) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const std::int64_t heads = sizes.query_heads;
  const std::int64_t sequences = AttentionSequences(call.options, sizes.query_length, sizes.key_length).count();
  const std::int64_t all = sizes.batch * sequences;
  const int workers =
      engine.threads() == 1 ? 1 : runtime::workers_for(engine, all * heads, short_nanoseconds(call, sequences));
  if (workers == 1) {
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      for (std::int64_t s = 0; s < sequences; ++s) attend_sequence(call, b, s, 0, heads);
    }
    return;
  }
  runtime::parallel_for(engine, all * heads, workers, [&](std::int64_t task, int) {
    const std::int64_t n = task / heads;
    attend_sequence(call, n / sequences, n % sequences, task % heads, task % heads + 1);
  });
}

}  // namespace headlight::ops
