#include "ops/attention_short.h"

#include <algorithm>

#include "ops/attention_masks.h"
#include "ops/attention_steps.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// What a call keeps on its stack: the queries of one head, one to a lane.
constexpr std::int64_t kMaxHeadDim = 128;
constexpr std::int64_t kMaxRows = 32;

// Rows of one sample that begin together, and what they see.
struct RowGroup {
  std::int64_t sample;
  std::int64_t first;  // in the tensor, as first_key
  std::int64_t rows;
  std::int64_t first_key;
  std::int64_t keys;
  bool all_seen;
  std::int32_t begin[kMaxRows];
  std::int32_t end[kMaxRows];
};

void find_intervals(const ShortAttention& call, const AttentionSequence& sequence, RowGroup& group) noexcept {
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

void attend_head(const ShortAttention& call, const RowGroup& group, std::int64_t head) noexcept {
  alignas(64) float columns[kMaxHeadDim * kMaxRows];
  float maximum[kMaxRows];
  float sum[kMaxRows];
  // Most calls have one head of keys for each of queries, and need no division: 1 % of a call of two heads of five
  // rows. (Of `group == 1` g++ makes a division again.)
  const std::int64_t key_value_head = call.sizes.group > 1 ? head / call.sizes.group : head;
  call.kernels.attend_short({.query = {.data = &call.query(group.sample, group.first, head, 0),
                                       .stride = call.query.stride(1),
                                       .count = group.rows,
                                       .head_dim = call.sizes.head_dim},
                             .keys = call.keys.block(group.sample, key_value_head, group.first_key, group.keys),
                             .seen = {group.begin, group.end, false},
                             .all_seen = group.all_seen,
                             .exponent_scale = call.exponent_scale,
                             .out = &call.out(group.sample, group.first, head, 0),
                             .out_stride = call.out.stride(1),
                             .columns = columns,
                             .maximum = maximum,
                             .sum = sum});
  if (!call.options.log_sum_exp) return;
  for (std::int64_t r = 0; r < group.rows; ++r) {
    call.options.log_sum_exp(group.sample, head, group.first + r) = log_sum_exp_of(maximum[r], sum[r]);
  }
}

// Heads [first_head, last_head) of a sequence. A sample's rows past its length are padding, and end as zeros.
void attend_sequence(const ShortAttention& call, std::int64_t sample, std::int64_t number, std::int64_t first_head,
                     std::int64_t last_head) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const AttentionSequence sequence =
      AttentionSequences(call.options, sizes.query_length, sizes.key_length)(sample, number);
  const std::int64_t last =
      call.options.query_offsets.empty() ? sizes.query_length : sequence.first_query + sequence.queries;
  RowGroup group;
  group.sample = sample;
  group.first_key = sequence.first_key;
  for (group.first = sequence.first_query; group.first < last; group.first += call.kernels.short_rows) {
    group.rows = std::min<std::int64_t>(call.kernels.short_rows, last - group.first);
    find_intervals(call, sequence, group);
    for (std::int64_t head = first_head; head < last_head; ++head) attend_head(call, group, head);
  }
}

// An order of magnitude, for whether other workers are worth waking.
double estimated_nanoseconds(const ShortAttention& call, std::int64_t sequences) noexcept {
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

// Whether every sequence has 1 to `most` keys, and at least half as many queries: with few of them most lanes are
// empty, and keys are better along the vectors.
bool all_are_short(const AttentionOptions& options, const AttentionSizes& sizes, std::int64_t most) noexcept {
  const AttentionSequences sequences(options, sizes.query_length, sizes.key_length);
  if (options.query_offsets.empty()) {
    return sizes.key_length > 0 && sizes.key_length <= most && 2 * sizes.query_length >= sizes.key_length;
  }
  for (std::int64_t s = 0; s < sequences.count(); ++s) {
    const AttentionSequence sequence = sequences(0, s);
    if (sequence.keys < 1 || sequence.keys > most || 2 * sequence.queries < sequence.keys) return false;
  }
  return true;
}

}  // namespace

bool is_short(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes, const AttentionOptions& options,
              const AttentionScale& scale) noexcept {
  const bool plain = !has_row_steps(options) && options.soft_cap == 0.0f && options.sinks.empty() &&
                     !options.probabilities.per_head && !options.probabilities.averaged && !options.scores &&
                     options.dropout.probability == 0.0f;
  return plain && scale.query_factor == 1.0f && kernels.short_rows <= kMaxRows && sizes.head_dim <= kMaxHeadDim &&
         sizes.value_dim > 0 && all_are_short(options, sizes, kernels.short_keys);
}

void attend_short(Engine& engine, const ShortAttention& call) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const std::int64_t heads = sizes.query_heads;
  const std::int64_t sequences = AttentionSequences(call.options, sizes.query_length, sizes.key_length).count();
  const std::int64_t all = sizes.batch * sequences;
  const int workers =
      engine.threads() == 1 ? 1 : runtime::workers_for(engine, all * heads, estimated_nanoseconds(call, sequences));
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
