#include "analysis/operation_cost.h"

#include "analysis/sizes.h"
#include "baseline/unfused_plan.h"
#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "layers/network/relative_bias.h"
#include "ops/attention/plan.h"
#include "ops/attention_backward/plan.h"
#include "ops/rows/sums.h"

namespace headlight::analysis {

namespace {

using layers::Operation;
using layers::OperationSizes;
using Loan = ScratchAccount::Loan;

// Pairs of a token and one that it sees, in a sequence: itself, and on each side as many as there are within a window
// of w (< 0: all), Σ_t min(w, t) = w (2 · length − 1 − w) / 2.
double visible_pairs(const AttentionSpec& spec, std::int64_t length) noexcept {
  if (length == 0) return 0;
  const auto on_a_side = [&](std::int64_t window) {
    const auto within = static_cast<double>(window < 0 ? length - 1 : std::min(window, length - 1));
    return within * (2 * static_cast<double>(length) - 1 - within) / 2;
  };
  return static_cast<double>(length) + on_a_side(spec.window_before) + on_a_side(spec.causal ? 0 : spec.window_after);
}

double pair_flops(const TrainedSequences& sequences, const AttentionSpec& spec) {
  double pairs = 0;
  for (const std::int64_t length : sequences.lengths) {
    pairs +=
        sequences.unfused() ? static_cast<double>(length) * static_cast<double>(length) : visible_pairs(spec, length);
  }
  return pairs * static_cast<double>(sequences.shape.batch) * static_cast<double>(spec.heads * spec.head_dim);
}

double product_flops(const TrainedSequences& sequences, const OperationSizes& sizes) {
  return 2 * static_cast<double>(sizes.in) * static_cast<double>(sizes.out) * static_cast<double>(sequences.tokens());
}

ops::AttentionSizes attention_sizes(const TrainedSequences& sequences, const AttentionSpec& spec) noexcept {
  return {.batch = sequences.shape.batch,
          .query_length = sequences.shape.length,
          .key_length = sequences.shape.length,
          .query_heads = spec.heads,
          .key_value_heads = spec.key_value_heads,
          .group = spec.heads / spec.key_value_heads,
          .head_dim = spec.head_dim,
          .value_dim = spec.head_dim};
}

AttentionOptions attention_options(const TrainedSequences& sequences, const OperationSizes& sizes) noexcept {
  AttentionOptions options;
  options.causal = sizes.attention->causal ? Causal::top_left : Causal::none;
  options.window = {sizes.attention->window_before, sizes.attention->window_after};
  options.softcap = sizes.attention->softcap;
  options.query_offsets = sequences.offsets;
  static constexpr float kBias = 0;
  if (sizes.attention->relative_bias) options.bias = {&kBias, {1, 1, 1, 1}};
  static constexpr float kSink = 0;  // nobody asks but whether there are any
  if (sizes.attention->sinks) options.sinks = {&kSink, 1};
  if (!sequences.unfused()) options.dropout.probability = sizes.dropout;
  return options;
}

std::size_t attention_bytes(const Engine& engine, const TrainedSequences& sequences, const OperationSizes& of) {
  const ops::AttentionSizes sizes = attention_sizes(sequences, *of.attention);
  const AttentionOptions options = attention_options(sequences, of);
  if (sequences.unfused()) return baseline::plan_unfused(engine, sizes, options, sizes.query_heads).bytes();
  // Query, key and value are columns of one buffer whose rows begin with whole lines.
  const std::int64_t lanes = kernels::gemm_kernels(engine.isa()).lanes;
  const std::int64_t before = (sizes.query_heads + sizes.key_value_heads) * sizes.head_dim;
  const bool values_aligned = before % lanes == 0 && (sizes.key_value_heads == 1 || sizes.head_dim % lanes == 0);
  return ops::attention_call_bytes(engine, sizes, options, values_aligned);
}

std::size_t fused_backward_bytes(const Engine& engine, const TrainedSequences& sequences, const OperationSizes& of) {
  const ops::AttentionSizes sizes = attention_sizes(sequences, *of.attention);
  return ops::float_backward_scratch_bytes(engine, kNetworkCostName,
                                           {.batch = sizes.batch,
                                            .query_length = sizes.query_length,
                                            .key_length = sizes.key_length,
                                            .query_heads = sizes.query_heads,
                                            .key_value_heads = sizes.key_value_heads,
                                            .head_dim = sizes.head_dim,
                                            .value_dim = sizes.value_dim});
}

std::size_t attention_backward_bytes(const Engine& engine, const TrainedSequences& sequences,
                                     const OperationSizes& of) {
  if (!sequences.unfused()) return fused_backward_bytes(engine, sequences, of);
  const ops::AttentionSizes sizes = attention_sizes(sequences, *of.attention);
  return baseline::plan_unfused_backward(engine, sizes, attention_options(sequences, of), true, false).bytes();
}

void pass_attention_backward(const Engine& engine, const TrainedSequences& sequences, const OperationSizes& sizes,
                             ScratchAccount& account) {
  account.pass(attention_backward_bytes(engine, sequences, sizes));
  if (sizes.attention->sinks) {
    const Loan sinks(account, layers::sink_bytes(*sizes.attention));
    account.pass(fused_backward_bytes(engine, sequences, sizes));
  }
  if (sizes.attention->relative_bias) {
    // Of one sum: a plan has no shards, each of which would have its own.
    const Loan by_distance(account, layers::distance_bytes(*sizes.attention, sequences.tokens()));
    account.pass(fused_backward_bytes(engine, sequences, sizes));
  }
}

}  // namespace

double forward_flops(const TrainedSequences& sequences, const Operation& operation) {
  const OperationSizes sizes = operation.sizes();
  return product_flops(sequences, sizes) +
         (sizes.attention != nullptr ? 4 * pair_flops(sequences, *sizes.attention) : 0);
}

double backward_flops(const TrainedSequences& sequences, const Operation& operation) {
  const OperationSizes sizes = operation.sizes();
  if (sizes.attention == nullptr) return 2 * product_flops(sequences, sizes);
  // The gradient of a relative bias works out scores and their gradients once more.
  const double of_pair = (sequences.unfused() ? 8 : 10) + (sizes.attention->relative_bias ? 4 : 0);
  return 2 * product_flops(sequences, sizes) + of_pair * pair_flops(sequences, *sizes.attention);
}

std::size_t bytes_beside_output(const TrainedSequences& sequences, const Operation& operation) {
  const AttentionSpec* const attention = operation.sizes().attention;
  if (attention == nullptr) return 0;
  std::int64_t columns = 0;
  for (const std::int64_t length : sequences.lengths) {
    if (sequences.unfused()) columns = std::max(columns, length);
  }
  runtime::ScratchLayout layout;
  layout.add<float>(attention->heads, sequences.tokens());
  layout.add<float>(attention->heads, sequences.tokens(), columns);
  return layout.bytes();
}

void pass_forward(const Engine& engine, const TrainedSequences& sequences, const Operation& operation,
                  std::int64_t rows, ScratchAccount& account) {
  const OperationSizes sizes = operation.sizes();
  if (sizes.out > 0) pass_linear(engine, rows, sizes.in, sizes.out, account);
  if (sizes.attention != nullptr) account.pass(attention_bytes(engine, sequences, sizes));
  if (sizes.weights > 0) account.pass(rows_bytes(rows, sizes.weights));
}

void pass_backward(const Engine& engine, const TrainedSequences& sequences, const Operation& operation,
                   std::int64_t rows, ScratchAccount& account) {
  const OperationSizes sizes = operation.sizes();
  const Loan dropped(account, sizes.adds_behind_dropout ? rows_bytes(rows, sizes.out) : 0);
  if (sizes.out > 0) {
    pass_linear_backward(engine, rows, sizes.in, sizes.out, sizes.has_bias, account, operation.adds(0));
  }
  if (sizes.attention != nullptr) pass_attention_backward(engine, sequences, sizes, account);
  const Loan weights(account, sizes.weights > 0 ? 2 * rows_bytes(rows, sizes.weights) : 0);
  for (const OperationSizes::Sums& sums : sizes.sums) {
    if (sums.columns == 0) continue;
    const auto bytes = static_cast<std::size_t>(sums.columns) * sizeof(float);
    const Loan weight(account, sums.one_plus_weight ? bytes : 0);
    const Loan buffers(account, sums.of_heads > 0 ? rows_workspace_bytes(engine, sums.of_heads) : 0);
    account.pass(ops::row_sums_bytes(rows, sums.columns, sums.count));
  }
}

}  // namespace headlight::analysis
