// Blocks of query rows against the keys that they see: from checked views to calls of the kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headlight/attention.h"
#include "kernels/attention/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/head_numbers.h"
#include "ops/attention/key_source.h"
#include "ops/attention/masks.h"
#include "ops/attention/plan.h"
#include "ops/attention/scale.h"
#include "ops/attention/score_modifiers.h"
#include "ops/call_plan.h"
#include "runtime/dropout.h"

namespace headlight::ops {

// One checked call.
struct AttentionCall {
  TypedView<4> query;
  KeySource keys;
  MutableTypedView<4> out;
  const AttentionOptions& options;
  AttentionSizes sizes;
  AttentionSequences sequences;
  const kernels::AttentionKernels& kernels;
  AttentionPlan plan;
  AttentionScale scale;
  kernels::ScoreModifiers modifiers;
  kernels::AttentionDropout dropout;
  HeadNumbers heads;
  std::byte* scratch;
};

[[nodiscard]] inline kernels::AttentionDropout dropout_of(const AttentionOptions& options) noexcept {
  const Dropout& dropout = options.dropout;
  return {dropout.seed, dropout.stream, runtime::dropout_threshold(dropout.probability),
          runtime::dropout_scale(dropout.probability)};
}

// Keys and values of one (sample, key/value head), packed or null. A key block that begins with
// key j of the tensor begins at float j · key_words, its values at j · packed_value_dim.
struct PackedHead {
  float* keys = nullptr;
  float* values = nullptr;
};

// Rows [first, last) of each of `heads` key/value heads of a sample, counted over Lq · group.
struct RowRange {
  std::int64_t sample;
  std::int64_t key_value_head;
  std::int64_t first;
  std::int64_t last;
  std::int64_t heads = 1;
};

// Calls f(rows of one sequence, sequence), and f(rows, nullptr) for padding rows that belong to none.
template <class Function>
void for_each_sequence(const AttentionCall& call, const RowRange& range, const Function& f) noexcept {
  const std::int64_t group = call.sizes.group;
  const std::int64_t count = call.sequences.count();
  const auto rows = [&](std::int64_t first, std::int64_t last) -> RowRange {
    return {range.sample, range.key_value_head, first, last, range.heads};
  };
  std::int64_t first = range.first;
  std::int64_t s = first < range.last ? call.sequences.of_query(first / group) : 0;
  for (; first < range.last; ++s) {
    const AttentionSequence sequence = call.sequences(range.sample, s);
    const std::int64_t last = std::min(range.last, (sequence.first_query + sequence.queries) * group);
    if (first < last) {
      f(rows(first, last), &sequence);
      first = last;
    }
    if (s + 1 == count) {
      if (first < range.last) f(rows(first, range.last), static_cast<const AttentionSequence*>(nullptr));
      return;
    }
  }
}

// The last panel of `keys` keys is only as wide as keys are left, and tiles read whole vectors of it: zeros behind it,
// where scratch memory may hold what is no number. (Panels that are filled up are never so.)
inline void clear_behind_panels(const kernels::AttentionKernels& kernels, float* end, std::int64_t keys) noexcept {
  if (kernels.keys_at_once == 1 && keys % kernels.lanes != 0) std::fill_n(end, kernels.lanes, 0.0f);
}

// Packed rows of so many values, of which kernels take several keys' as one.
[[nodiscard]] inline std::int64_t packed_value_rows(const kernels::AttentionKernels& kernels,
                                                    std::int64_t keys) noexcept {
  return divide_up(kernels::filled_up(keys, kernels.keys_at_once), std::int64_t{kernels.numbers_of_word});
}

// Packs the key blocks that begin among keys [first, last) of the tensor.
void pack_head(const AttentionCall& call, std::int64_t sample, std::int64_t key_value_head, std::int64_t first,
               std::int64_t last, PackedHead packed) noexcept;

// Everything for those rows, from query to out; at most row_block of them. Without `packed` the keys are packed block
// by block, or read where they lie, as the plan says.
void attend_rows(const AttentionCall& call, int worker, const RowRange& range, PackedHead packed) noexcept;

// Key block `block` alone, into the call's partial states.
void sweep_partially(const AttentionCall& call, int worker, const RowRange& range, std::int64_t block) noexcept;

// Merges the partial states of those heads' rows in ascending order, and finishes the rows.
void merge_partials(const AttentionCall& call, int worker, const RowRange& range) noexcept;

}  // namespace headlight::ops
