// attention_unfused(): checks, and heads dealt out to threads. What happens in a head is in attention_unfused_head.cc.
#include "baseline/attention_unfused.h"

#include <algorithm>
#include <limits>

#include "baseline/attention_unfused_head.h"
#include "baseline/unfused_plan.h"
#include "ops/check.h"
#include "runtime/parallel.h"

namespace headlight::baseline {
namespace {

using ops::AttentionSequence;
using ops::AttentionSequences;

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
    if (wanted.per_head && sequence.keys > 0) {
      std::copy_n(probabilities + row * sequence.keys, sequence.keys, &wanted.per_head(b, h, r, first_column));
    }
    if (!wanted.averaged) continue;
    for (std::int64_t key = 0; key < sequence.keys; ++key) {
      wanted.averaged(b, r, first_column + key) += probabilities[row * sequence.keys + key];
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

// options.scores, but for what pairs of one sequence will be written where those behind the masks are asked for.
void begin_scores(const UnfusedCall& call, std::int64_t b, std::int64_t h, const UnfusedScratch& scratch) noexcept {
  const View<float, 4>& scores = call.options.scores;
  if (!scores || scores.size() == 0) return;
  if (call.options.scores_at != ScoreStage::masked) return give_unfused_products(call, b, h, scratch.gemm);
  for (std::int64_t i = 0; i < scores.extent(2); ++i) {
    std::fill_n(&scores(b, h, i, 0), scores.extent(3), -std::numeric_limits<float>::infinity());
  }
}

void divide_by_heads(const UnfusedCall& call, std::int64_t b) noexcept {
  const View<float, 3>& averaged = call.options.probabilities.averaged;
  if (call.sizes.query_heads == 0) return;  // zeros, and no mean
  for (std::int64_t r = 0; r < averaged.extent(1); ++r) {
    for (std::int64_t j = 0; j < averaged.extent(2); ++j)
      averaged(b, r, j) /= static_cast<float>(call.sizes.query_heads);
  }
}

void attend_head(const UnfusedCall& call, const AttentionSequences& sequences, std::int64_t b, std::int64_t h,
                 const UnfusedScratch& scratch) noexcept {
  clear_sample(call.options.probabilities.per_head, b, h);
  begin_scores(call, b, h, scratch);
  for (std::int64_t s = 0; s < sequences.count(); ++s) {
    const AttentionSequence sequence = sequences(b, s);
    unfused_probabilities(call, sequence, b, h, scratch);
    give_probabilities(call, sequence, b, h, scratch.scores);
    mix_unfused(call, sequence, b, h, scratch);
    if (sequences.count() == 1) clear_padding(call, sequence, b, h);
  }
}

}  // namespace

void attention_unfused(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                       View<float, 4> out, const AttentionOptions& options) {
  const ops::AttentionSizes sizes = ops::check_attention("attention_unfused", query, key, value, out, options);
  if (ops::writes_nothing(out, options)) return;
  const UnfusedCall call = unfused_call(engine.isa(), query, key, value, out, options, sizes);
  const AttentionSequences sequences(options, sizes.query_length, sizes.key_length);

  // An average over heads is summed in their order, so a sample then stays on one thread.
  const bool average = static_cast<bool>(options.probabilities.averaged);
  const std::int64_t heads_of_task = average ? sizes.query_heads : 1;
  const std::int64_t tasks = average ? sizes.batch : sizes.batch * sizes.query_heads;
  const UnfusedPlan plan = plan_unfused(engine, sizes, options, tasks);
  const runtime::Scratch memory(engine, plan.bytes(), "attention_unfused");
  runtime::parallel_for(engine, tasks, plan.workers, [&](std::int64_t task, int worker) {
    const UnfusedScratch scratch{plan.in(memory.data(), worker, plan.scores),
                                 plan.in(memory.data(), worker, plan.gemm)};
    const std::int64_t b = average ? task : task / sizes.query_heads;
    const std::int64_t first_head = average ? 0 : task % sizes.query_heads;
    if (average) clear_sample(options.probabilities.averaged, b, 0);
    for (std::int64_t h = first_head; h < first_head + heads_of_task; ++h) attend_head(call, sequences, b, h, scratch);
    if (average) divide_by_heads(call, b);
  });
}

}  // namespace headlight::baseline
