// attention_unfused(): checks, and heads dealt out to threads. What happens in a head is in attention_unfused_head.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "ops/attention_unfused_head.h"
#include "ops/check.h"
#include "ops/gemm_internal.h"
#include "runtime/parallel.h"

namespace headlight {
namespace {

using ops::AttentionSequence;
using ops::AttentionSequences;
using ops::UnfusedCall;
using ops::UnfusedScratch;

// Floats that one head needs at most.
struct HeadSizes {
  std::int64_t scores = 0;
  std::int64_t gemm = 0;
};

HeadSizes largest_head(const UnfusedCall& call, const AttentionSequences& sequences) {
  HeadSizes largest;
  largest.scores = ops::most_unfused_scores(call);
  for (std::int64_t b = 0; b < call.sizes.batch; ++b) {
    for (std::int64_t s = 0; s < sequences.count(); ++s) {
      const AttentionSequence sequence = sequences(b, s);
      largest.gemm = std::max(
          {largest.gemm, ops::gemm_scratch_floats(call.isa, sequence.queries, sequence.keys, call.sizes.head_dim),
           ops::gemm_scratch_floats(call.isa, sequence.queries, call.sizes.value_dim, sequence.keys)});
    }
  }
  return largest;
}

// Rows past the sample's length hold nothing.
void clear_padding(const UnfusedCall& call, const AttentionSequence& sequence, std::int64_t b,
                   std::int64_t h) noexcept {
  for (std::int64_t i = sequence.first_query + sequence.queries; i < call.sizes.query_length; ++i) {
    for (std::int64_t d = 0; d < call.sizes.value_dim; ++d) call.out(b, i, h, d) = 0;
    if (call.options.log_sum_exp) call.options.log_sum_exp(b, h, i) = -std::numeric_limits<float>::infinity();
  }
}

// The probabilities asked for, of one head of one sequence. Both outputs were zeros before the first.
void give_probabilities(const UnfusedCall& call, const AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                        const float* probabilities) noexcept {
  const Probabilities& wanted = call.options.probabilities;
  const auto count = wanted.rows.empty() ? call.sizes.query_length : static_cast<std::int64_t>(wanted.rows.size());
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t i = wanted.rows.empty() ? r : wanted.rows[static_cast<std::size_t>(r)];
    const std::int64_t row = i - sequence.first_query;
    if (row < 0 || row >= sequence.queries) continue;
    const std::int64_t first_column = wanted.own_keys ? 0 : sequence.first_key;
    for (std::int64_t key = 0; key < sequence.keys; ++key) {
      const float share = probabilities[row * sequence.keys + key];
      if (wanted.per_head) wanted.per_head(b, h, r, first_column + key) = share;
      if (wanted.averaged) wanted.averaged(b, r, first_column + key) += share;
    }
  }
}

template <int Rank>
void clear_sample(const View<float, Rank>& probabilities, std::int64_t b, std::int64_t h) noexcept {
  if (!probabilities) return;
  for (std::int64_t r = 0; r < probabilities.extent(Rank - 2); ++r) {
    for (std::int64_t j = 0; j < probabilities.extent(Rank - 1); ++j) {
      if constexpr (Rank == 4) {
        probabilities(b, h, r, j) = 0;
      } else {
        probabilities(b, r, j) = 0;
      }
    }
  }
}

void divide_by_heads(const UnfusedCall& call, std::int64_t b) noexcept {
  const View<float, 3>& averaged = call.options.probabilities.averaged;
  for (std::int64_t r = 0; r < averaged.extent(1); ++r) {
    for (std::int64_t j = 0; j < averaged.extent(2); ++j)
      averaged(b, r, j) /= static_cast<float>(call.sizes.query_heads);
  }
}

void attend_head(const UnfusedCall& call, const AttentionSequences& sequences, std::int64_t b, std::int64_t h,
                 const UnfusedScratch& scratch) noexcept {
  clear_sample(call.options.probabilities.per_head, b, h);
  for (std::int64_t s = 0; s < sequences.count(); ++s) {
    const AttentionSequence sequence = sequences(b, s);
    ops::unfused_probabilities(call, sequence, b, h, scratch);
    give_probabilities(call, sequence, b, h, scratch.scores);
    ops::mix_unfused(call, sequence, b, h, scratch);
    if (sequences.count() == 1) clear_padding(call, sequence, b, h);
  }
}

}  // namespace

void attention_unfused(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                       View<float, 4> out, const AttentionOptions& options) {
  const ops::AttentionSizes sizes = ops::check_attention("attention_unfused", query, key, value, out, options);
  if (ops::writes_nothing(out, options)) return;
  const UnfusedCall call = ops::unfused_call(engine.isa(), query, key, value, out, options, sizes);
  const AttentionSequences sequences(options, sizes.query_length, sizes.key_length);
  const HeadSizes floats = largest_head(call, sequences);

  // An average over heads is summed in their order, so a sample then stays on one thread.
  const bool average = static_cast<bool>(options.probabilities.averaged);
  const std::int64_t heads_of_task = average ? sizes.query_heads : 1;
  const std::int64_t tasks = average ? sizes.batch : sizes.batch * sizes.query_heads;
  // Two products at some 50 multiply-adds a nanosecond, and a nanosecond for each vector of scores.
  const double nanoseconds = static_cast<double>(sizes.batch * sizes.query_heads) * static_cast<double>(floats.scores) *
                             (static_cast<double>(sizes.head_dim + sizes.value_dim) / 50 + 0.1);
  const int lanes = runtime::lanes_for(engine, tasks, nanoseconds);

  runtime::ScratchLayout layout;
  const std::size_t scores_at = layout.add<float>(floats.scores);
  const std::size_t gemm_at = layout.add<float>(floats.gemm);
  const runtime::Scratch memory(engine, layout.bytes() * static_cast<std::size_t>(lanes));
  runtime::parallel_for(engine, tasks, lanes, [&](std::int64_t task, int lane) {
    std::byte* const own = memory.data() + layout.bytes() * static_cast<std::size_t>(lane);
    const UnfusedScratch scratch{reinterpret_cast<float*>(own + scores_at), reinterpret_cast<float*>(own + gemm_at)};
    const std::int64_t b = average ? task : task / sizes.query_heads;
    const std::int64_t first_head = average ? 0 : task % sizes.query_heads;
    if (average) clear_sample(options.probabilities.averaged, b, 0);
    for (std::int64_t h = first_head; h < first_head + heads_of_task; ++h) attend_head(call, sequences, b, h, scratch);
    if (average) divide_by_heads(call, b);
  });
}

}  // namespace headlight
