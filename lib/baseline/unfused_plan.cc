#include "baseline/unfused_plan.h"

#include <algorithm>
#include <string_view>

#include "headlight/out_of_memory.h"
#include "ops/attention/masks.h"
#include "ops/gemm/internal.h"
#include "runtime/costs.h"

namespace headlight::baseline {
namespace {

using ops::AttentionSequence;
using ops::AttentionSequences;

// f(sequence) for those of all samples.
template <class Function>
void for_each_sequence(const ops::AttentionSizes& sizes, const AttentionOptions& options, const Function& f) {
  const AttentionSequences sequences(options, sizes.query_length, sizes.key_length);
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    for (std::int64_t s = 0; s < sequences.count(); ++s) f(sequences(b, s));
  }
}

// Floats of scratch for a product.
std::int64_t product_floats(const Engine& engine, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                            Transpose transpose_a = Transpose::no) noexcept {
  return ops::gemm_scratch_floats(engine.isa(), std::min(rows, kRowsAtOnce), columns, depth, transpose_a);
}

// Scores of the largest sequence. Throws OutOfMemory, in the name of `operation`, where no machine could hold them.
std::int64_t most_scores(std::string_view operation, const ops::AttentionSizes& sizes,
                         const AttentionOptions& options) {
  // More scores than any machine has memory for; below it no product of ours passes 64 bits.
  constexpr std::int64_t kMostScores = std::int64_t{1} << 45;
  std::int64_t most = 0;
  for_each_sequence(sizes, options, [&](const AttentionSequence& sequence) {
    std::int64_t scores = 0;
    const bool wraps = __builtin_mul_overflow(sequence.queries, sequence.keys, &scores);
    if (wraps || scores > kMostScores) {
      const double bytes = 4.0 * static_cast<double>(sequence.queries) * static_cast<double>(sequence.keys);
      throw OutOfMemory(operation, bytes < 0x1p63 ? static_cast<std::size_t>(bytes) : SIZE_MAX);
    }
    most = std::max(most, scores);
  });
  return most;
}

// Of all sequences of all heads, as a number to guess times by.
double all_scores(const ops::AttentionSizes& sizes, const AttentionOptions& options) {
  double scores = 0;
  for_each_sequence(sizes, options, [&](const AttentionSequence& sequence) {
    scores += static_cast<double>(sequence.queries) * static_cast<double>(sequence.keys);
  });
  return scores * static_cast<double>(sizes.query_heads);
}

std::int64_t gemm_floats(const Engine& engine, const ops::AttentionSizes& sizes, const AttentionOptions& options) {
  std::int64_t most = 0;
  if (options.scores) most = product_floats(engine, sizes.query_length, sizes.key_length, sizes.head_dim);
  for_each_sequence(sizes, options, [&](const AttentionSequence& sequence) {
    most = std::max({most, product_floats(engine, sequence.queries, sequence.keys, sizes.head_dim),
                     product_floats(engine, sequence.queries, sizes.value_dim, sequence.keys)});
  });
  return most;
}

std::int64_t backward_gemm_floats(const Engine& engine, const ops::AttentionSizes& sizes,
                                  const AttentionOptions& options) {
  std::int64_t most = 0;
  for_each_sequence(sizes, options, [&](const AttentionSequence& sequence) {
    const std::int64_t queries = sequence.queries, keys = sequence.keys;
    most = std::max({most, product_floats(engine, queries, keys, sizes.head_dim),
                     product_floats(engine, queries, keys, sizes.value_dim),
                     product_floats(engine, queries, sizes.head_dim, keys),
                     product_floats(engine, keys, sizes.head_dim, queries, Transpose::yes),
                     product_floats(engine, keys, sizes.value_dim, queries, Transpose::yes)});
  });
  return most;
}

}  // namespace

UnfusedPlan plan_unfused(const Engine& engine, const ops::AttentionSizes& sizes, const AttentionOptions& options,
                         std::int64_t tasks) {
  const std::int64_t scores = most_scores("attention_unfused", sizes, options);
  const double nanoseconds = all_scores(sizes, options) *
                             (static_cast<double>(sizes.head_dim + sizes.value_dim) / runtime::costs::kUnfusedProducts +
                              runtime::costs::kUnfusedScore);
  UnfusedPlan plan{};
  plan.workers = runtime::workers_for(engine, tasks, nanoseconds);
  plan.scores = plan.for_worker<float>(scores);
  plan.gemm = plan.for_worker<float>(gemm_floats(engine, sizes, options));
  return plan;
}

UnfusedBackwardPlan plan_unfused_backward(const Engine& engine, const ops::AttentionSizes& sizes,
                                          const AttentionOptions& options, bool keeps_probabilities,
                                          bool adds_to_shared_sums) {
  const std::int64_t scores = most_scores("attention_unfused_backward", sizes, options);
  const double nanoseconds = all_scores(sizes, options) *
                             static_cast<double>(3 * sizes.head_dim + 2 * sizes.value_dim) /
                             runtime::costs::kUnfusedProducts;
  UnfusedBackwardPlan plan{};
  plan.workers =
      adds_to_shared_sums ? 1 : runtime::workers_for(engine, sizes.batch * sizes.key_value_heads, nanoseconds);
  plan.probabilities = plan.for_worker<float>(keeps_probabilities ? 0 : scores);
  plan.gradients = plan.for_worker<float>(scores);
  plan.raw_scores = plan.for_worker<float>(options.softcap == 0 ? 0 : (kCappedRows + 1) * sizes.key_length);
  plan.gemm = plan.for_worker<float>(backward_gemm_floats(engine, sizes, options));
  return plan;
}

}  // namespace headlight::baseline
