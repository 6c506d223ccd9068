#include "ops/attention_short.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention_masks.h"
#include "runtime/parallel.h"

namespace headlight::ops {
namespace {

// What a call keeps on its stack: the queries of one head, one to a lane.
constexpr std::int64_t kMaxHeadDim = 128;
constexpr std::int64_t kMaxLanes = 16;

// Rows of one sample that begin together, and what they see.
struct RowGroup {
  std::int64_t sample;
  std::int64_t first;
  std::int64_t rows;
  std::int64_t keys;
  bool all_seen;
  std::int32_t begin[kMaxLanes];
  std::int32_t end[kMaxLanes];
};

void find_intervals(const ShortAttention& call, const AttentionSequence& sequence, RowGroup& group) noexcept {
  const IntervalRule rule(call.options, sequence);
  group.keys = std::max<std::int64_t>(sequence.keys, 1);
  group.all_seen = true;
  for (std::int64_t r = 0; r < group.rows; ++r) {
    const std::int64_t row = group.first + r;
    const KeyInterval seen = row < sequence.queries ? rule(row) : KeyInterval{};
    group.begin[r] = static_cast<std::int32_t>(seen.begin);
    group.end[r] = static_cast<std::int32_t>(seen.end);
    group.all_seen = group.all_seen && seen.begin == 0 && seen.end == group.keys;
  }
}

void attend_head(const ShortAttention& call, const RowGroup& group, std::int64_t head) noexcept {
  alignas(64) float columns[kMaxHeadDim * kMaxLanes];
  float maximum[kMaxLanes];
  float sum[kMaxLanes];
  const std::int64_t key_value_head = head / call.sizes.group;
  call.kernels.attend_short({.query = &call.query(group.sample, group.first, head, 0),
                             .query_stride = call.query.stride(1),
                             .rows = group.rows,
                             .head_dim = call.sizes.head_dim,
                             .key = &call.key(group.sample, 0, key_value_head, 0),
                             .key_stride = call.key.stride(1),
                             .keys = group.keys,
                             .value = &call.value(group.sample, 0, key_value_head, 0),
                             .value_stride = call.value.stride(1),
                             .value_dim = call.sizes.value_dim,
                             .out = &call.out(group.sample, group.first, head, 0),
                             .out_stride = call.out.stride(1),
                             .begin = group.begin,
                             .end = group.end,
                             .all_seen = group.all_seen,
                             .exponent_scale = call.exponent_scale,
                             .columns = columns,
                             .maximum = maximum,
                             .sum = sum});
  if (!call.options.log_sum_exp) return;
  for (std::int64_t r = 0; r < group.rows; ++r) {
    call.options.log_sum_exp(group.sample, head, group.first + r) = log_sum_exp_of(maximum[r], sum[r]);
  }
}

// Heads [first_head, last_head) of a sample.
void attend_sample(const ShortAttention& call, std::int64_t sample, std::int64_t first_head,
                   std::int64_t last_head) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const AttentionSequence sequence = AttentionSequences(call.options, sizes.query_length, sizes.key_length)(sample, 0);
  RowGroup group;
  group.sample = sample;
  for (group.first = 0; group.first < sizes.query_length; group.first += call.kernels.lanes) {
    group.rows = std::min<std::int64_t>(call.kernels.lanes, sizes.query_length - group.first);
    find_intervals(call, sequence, group);
    for (std::int64_t head = first_head; head < last_head; ++head) attend_head(call, group, head);
  }
}

// An order of magnitude, for whether other threads are worth waking.
double estimated_nanoseconds(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  const auto lanes = static_cast<double>(kernels.lanes);
  const double groups = std::ceil(static_cast<double>(sizes.query_length) / lanes) * static_cast<double>(sizes.batch) *
                        static_cast<double>(sizes.query_heads);
  const auto width = static_cast<double>(sizes.head_dim + sizes.value_dim);
  return groups * (20.0 + static_cast<double>(sizes.key_length) * width / 5.0);
}

}  // namespace

float log_sum_exp_of(float maximum, float sum) noexcept {
  constexpr double kLog2 = 0.693147180559945309;
  return sum == 0.0f ? -std::numeric_limits<float>::infinity()
                     : static_cast<float>(static_cast<double>(maximum) * kLog2 + std::log(static_cast<double>(sum)));
}

AttentionScale scale_of(const AttentionOptions& options, std::int64_t head_dim) noexcept {
  constexpr double kLog2e = 1.44269504088896340736;
  const double scale = options.scale   ? static_cast<double>(*options.scale)
                       : head_dim == 0 ? 0.0
                                       : 1.0 / std::sqrt(static_cast<double>(head_dim));
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  const auto factor = static_cast<float>(std::min(std::abs(scale) * kLog2e, kLargest));
  if (factor < std::numeric_limits<float>::min()) return {static_cast<float>(kLog2e), 0.0f};
  return {factor, scale < 0 ? -1.0f : 1.0f};
}

bool is_short(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes, const AttentionOptions& options,
              const AttentionScale& scale) noexcept {
  const bool fits = sizes.key_length > 0 && sizes.key_length <= kernels.lanes && kernels.lanes <= kMaxLanes &&
                    sizes.head_dim <= kMaxHeadDim && sizes.value_dim > 0;
  // Fewer rows leave most lanes empty: keys are better along the vectors then.
  const bool enough_rows = 2 * sizes.query_length >= sizes.key_length;
  return fits && enough_rows && scale.query_factor == 1.0f && options.query_offsets.empty() && !options.mask &&
         !options.bias && !options.probabilities.per_head && !options.probabilities.averaged &&
         options.dropout.probability == 0.0f;
}

void attend_short(Engine& engine, const ShortAttention& call) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const std::int64_t heads = sizes.query_heads;
  const int lanes = engine.threads() == 1
                        ? 1
                        : runtime::lanes_for(engine, sizes.batch * heads, estimated_nanoseconds(call.kernels, sizes));
  if (lanes == 1) {
    for (std::int64_t sample = 0; sample < sizes.batch; ++sample) attend_sample(call, sample, 0, heads);
    return;
  }
  runtime::parallel_for(engine, sizes.batch * heads, lanes, [&](std::int64_t task, int) {
    attend_sample(call, task / heads, task % heads, task % heads + 1);
  });
}

}  // namespace headlight::ops
