#include "ops/attention/short.h"

#include "ops/attention/score_modifiers.h"
#include "ops/attention/short_rows.h"
#include "ops/attention/typed_short.h"

namespace headlight::ops {
namespace {

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
  const bool plain = !has_row_modifiers(options) && options.softcap == 0.0f && options.sinks.empty() &&
                     !options.probabilities.per_head && !options.probabilities.averaged && !options.scores &&
                     options.dropout.probability == 0.0f;
  return plain && scale.query_factor == 1.0f && kernels.short_rows <= kMaxShortRows &&
         sizes.head_dim <= kMaxShortHeadDim && sizes.value_dim > 0 && all_are_short(options, sizes, kernels.short_keys);
}

std::int64_t ShortAttention::floats() const noexcept { return short_columns(kernels, sizes); }

void ShortAttention::attend(const ShortRows& group, std::int64_t head, float* room) const noexcept {
  float maximum[kMaxShortRows];
  float sum[kMaxShortRows];
  // Most calls have one head of keys for each of queries, and need no division. (Of `group == 1` g++ makes a division
  // again.)
  const std::int64_t key_value_head = sizes.group > 1 ? head / sizes.group : head;
  kernels.attend_short({.query = {.data = &query(group.sample, group.first, head, 0),
                                  .stride = query.stride(1),
                                  .count = group.rows,
                                  .head_dim = sizes.head_dim},
                        .keys = keys.block(group.sample, key_value_head, group.first_key, group.keys),
                        .seen = {group.begin, group.end, false},
                        .all_seen = group.all_seen,
                        .exponent_scale = exponent_scale,
                        .out = &out(group.sample, group.first, head, 0),
                        .out_stride = out.stride(1),
                        .columns = room,
                        .maximum = maximum,
                        .sum = sum});
  if (!options.log_sum_exp) return;
  for (std::int64_t r = 0; r < group.rows; ++r) {
    options.log_sum_exp(group.sample, head, group.first + r) = log_sum_exp_of(maximum[r], sum[r]);
  }
}

std::size_t short_call_bytes(const Engine& engine, const kernels::AttentionKernels& kernels,
                             const AttentionSizes& sizes, const AttentionOptions& options) noexcept {
  struct Call {
    const AttentionSizes& sizes;
    const kernels::AttentionKernels& kernels;
  };
  const std::int64_t sequences = AttentionSequences(options, sizes.query_length, sizes.key_length).count();
  const int workers = short_workers(engine, Call{sizes, kernels}, sequences);
  return short_scratch_bytes(short_columns(kernels, sizes), workers);
}

std::size_t most_short_bytes(const Engine& engine, const kernels::AttentionKernels& kernels,
                             const AttentionSizes& sizes) noexcept {
  const bool is_empty = sizes.query_length == 0 || sizes.key_length == 0 || sizes.value_dim == 0;
  if (is_empty || sizes.head_dim > kMaxShortHeadDim) return 0;
  const bool typed = stays_near(kernels, sizes);
  return short_scratch_bytes(typed ? typed_short_floats(kernels, sizes) : short_columns(kernels, sizes),
                             engine.threads());
}

// Fewer queries than lanes may take wider columns.
std::size_t short_bytes_up_to(const Engine& engine, const kernels::AttentionKernels& kernels,
                              const AttentionSizes& sizes) noexcept {
  if (sizes.query_length == 0 || sizes.value_dim == 0 || sizes.head_dim > kMaxShortHeadDim) return 0;
  AttentionSizes few = sizes;
  few.query_length = std::min<std::int64_t>(sizes.query_length, kernels.lanes);
  return short_scratch_bytes(typed_short_floats(kernels, sizes) + short_columns(kernels, few), engine.threads());
}

void attend_short(Engine& engine, std::string_view name, const ShortAttention& call) {
  attend_short_rows(engine, name, call);
}

}  // namespace headlight::ops
