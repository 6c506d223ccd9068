#include "analysis/training_scratch.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "baseline/unfused_plan.h"
#include "kernels/kernels.h"
#include "layers/feed_forward_rows.h"
#include "layers/rows.h"
#include "ops/attention/plan.h"
#include "ops/attention_backward/plan.h"
#include "ops/gemm/internal.h"
#include "ops/rows/sums.h"
#include "runtime/slot_choice.h"

namespace headlight::analysis {

namespace {

using Loan = ScratchAccount::Loan;

// What gemm() borrows for C [m, n], which is `residual` itself or is not.
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  kernels::OperandLayout b = kernels::OperandLayout::rows;
  bool a_is_transposed = false;
  float beta = 0;
  bool adds_to_itself = false;
};

void pass_product(const Engine& engine, const Product& product, ScratchAccount& account) {
  float c = 0;  // an address, no more
  kernels::GemmBlock block{};
  block.rows = product.m;
  block.columns = product.n;
  block.depth = product.k;
  block.a_depth_stride = product.a_is_transposed ? 2 : 1;
  block.b.layout = product.b;
  // Rows of activations lie lines apart, so that no product of one column is computed as one of one row.
  block.b.stride = block.c_row_stride = layers::row_distance(product.n);
  block.c = &c;
  block.epilogue.beta = product.beta;
  if (product.adds_to_itself) block.epilogue.residual = &c;
  account.pass(ops::gemm_batch_bytes(engine, {.product = block}).wanted);
}

}  // namespace

void pass_linear(const Engine& engine, std::int64_t rows, std::int64_t in, std::int64_t out, ScratchAccount& account) {
  pass_product(engine, {.m = rows, .n = out, .k = in, .b = kernels::OperandLayout::columns}, account);
}

void pass_linear_backward(const Engine& engine, std::int64_t rows, std::int64_t in, std::int64_t out, bool bias,
                          ScratchAccount& account, bool adds_to_itself) {
  pass_product(engine, {.m = out, .n = in, .k = rows, .a_is_transposed = true, .beta = 1}, account);
  if (bias) account.pass(ops::row_sums_bytes(rows, out, 1));
  pass_product(engine, {.m = rows, .n = in, .k = out, .adds_to_itself = adds_to_itself}, account);
}

namespace {

ops::AttentionSizes sizes_of(const TrainedLayer& layer) noexcept {
  return {.batch = layer.batch,
          .query_length = layer.length,
          .key_length = layer.length,
          .query_heads = layer.heads,
          .key_value_heads = layer.heads,
          .group = 1,
          .head_dim = layer.width / layer.heads,
          .value_dim = layer.width / layer.heads};
}

// Scores of a sequence for each worker, keys and values packed, running sums; or the plain route's P.
std::size_t attention_bytes(const Engine& engine, const TrainedLayer& layer) {
  const ops::AttentionSizes sizes = sizes_of(layer);
  if (layer.unfused) {
    return baseline::plan_unfused(engine, sizes, {}, sizes.batch * sizes.query_heads).bytes();
  }
  AttentionOptions options;
  options.dropout.probability = layer.dropout;
  // Query, key and value are columns of one buffer whose rows begin with whole lines.
  const std::int64_t lanes = kernels::gemm_kernels(engine.isa()).lanes;
  const bool values_aligned = 2 * layer.width % lanes == 0 && (layer.heads == 1 || sizes.head_dim % lanes == 0);
  return ops::attention_call_bytes(engine, sizes, options, values_aligned);
}

// Tiles of P and dS for each worker, gradients of a block of keys and values, δ of every row; or the plain route's dP.
std::size_t attention_backward_bytes(const Engine& engine, const TrainedLayer& layer) {
  if (layer.unfused) {
    return baseline::plan_unfused_backward(engine, sizes_of(layer), {}, true, false).bytes();
  }
  return ops::float_backward_scratch_bytes(engine, "attention_backward",
                                           {.batch = layer.batch,
                                            .query_length = layer.length,
                                            .key_length = layer.length,
                                            .query_heads = layer.heads,
                                            .key_value_heads = layer.heads,
                                            .head_dim = layer.width / layer.heads,
                                            .value_dim = layer.width / layer.heads});
}

// Query, key and value; the heads' outputs; what weighs or gates them, and what comes of it.
std::size_t attention_rows_bytes(const TrainedLayer& layer) noexcept {
  const std::size_t heads = rows_bytes(layer.rows(), 3 * layer.width) + rows_bytes(layer.rows(), layer.width);
  if (layer.merge == Merge::concatenate) return heads;
  const std::int64_t columns = layer.mixing_columns();
  // Without a projection all queries of a sample share one row.
  const std::size_t mixing = columns > 0 ? rows_bytes(layer.rows(), columns) : rows_bytes(layer.batch, layer.heads);
  return heads + mixing + rows_bytes(layer.rows(), layer.merged_columns());
}

void walk_attention(const Engine& engine, const TrainedLayer& layer, ScratchAccount& account) {
  pass_linear(engine, layer.rows(), layer.width, 3 * layer.width, account);
  account.pass(attention_bytes(engine, layer));
  if (layer.mixing_columns() > 0) {
    pass_linear(engine, layer.rows(), layer.width, layer.mixing_columns(), account);
  }
  pass_linear(engine, layer.rows(), layer.merged_columns(), layer.width, account);
}

void walk_attention_backward(const Engine& engine, const TrainedLayer& layer, ScratchAccount& account) {
  const bool weighs = layer.merge == Merge::weighted;
  const std::int64_t mixing = layer.mixing_columns();
  const std::int64_t learned = weighs ? layer.heads : mixing;
  // The gradients of what the forward pass kept, and of the weights or gates of each query.
  const Loan gradients(account, attention_rows_bytes(layer) + (learned > 0 ? rows_bytes(layer.rows(), learned) : 0));
  pass_linear_backward(engine, layer.rows(), layer.merged_columns(), layer.width, layer.bias, account);
  if (weighs) account.pass(ops::row_sums_bytes(layer.rows(), layer.heads, 1));
  if (mixing > 0) pass_linear_backward(engine, layer.rows(), layer.width, mixing, false, account);
  account.pass(attention_backward_bytes(engine, layer));
  // Where a merge has its part in the query's gradient the last product adds to that.
  pass_linear_backward(engine, layer.rows(), layer.width, 3 * layer.width, layer.bias, account, mixing > 0);
}

// f(rows) for every run of rows that goes through the feed-forward part at a time.
template <class Function>
void for_each_run(const TrainedLayer& layer, Function f) {
  const std::int64_t at_once = layers::rows_at_once(layer.rows(), layer.hidden);
  if (at_once == 0) return;
  f(at_once);
  if (layer.rows() % at_once != 0) f(layer.rows() % at_once);
}

// Activations of some rows.
std::size_t active_bytes(const TrainedLayer& layer) noexcept {
  return static_cast<std::size_t>(layers::rows_at_once(layer.rows(), layer.hidden) *
                                  layers::row_distance(layer.hidden)) *
         sizeof(float);
}

void walk_feed_forward(const Engine& engine, const TrainedLayer& layer, bool gives, ScratchAccount& account) {
  const Loan active(account, gives ? active_bytes(layer) : 0);
  pass_linear(engine, layer.rows(), layer.width, layer.hidden, account);
  if (!gives) return;
  for_each_run(layer, [&](std::int64_t rows) { pass_linear(engine, rows, layer.hidden, layer.width, account); });
}

void walk_feed_forward_backward(const Engine& engine, const TrainedLayer& layer, ScratchAccount& account) {
  // Activations of some rows, made again, and their gradients.
  const Loan active(account, 2 * active_bytes(layer));
  for_each_run(layer, [&](std::int64_t rows) {
    pass_linear_backward(engine, rows, layer.hidden, layer.width, layer.bias, account);
    pass_linear_backward(engine, rows, layer.width, layer.hidden, layer.bias, account);
  });
}

// The gradients of a normalisation's weight, and of its bias where it has one.
void walk_norm_backward(const TrainedLayer& layer, ScratchAccount& account) {
  account.pass(ops::row_sums_bytes(layer.rows(), layer.width, layer.bias ? 2 : 1));
}

}  // namespace

int ScratchAccount::borrow(std::size_t bytes) noexcept {
  if (bytes == 0) return -1;
  const auto candidates = static_cast<int>(std::min(touched_ + 1, kSlots));
  const runtime::SlotChoice chosen =
      runtime::choose_slot(candidates, bytes, [&](int index) -> std::optional<std::size_t> {
        const auto slot = static_cast<std::size_t>(index);
        return borrowed_[slot] ? std::nullopt : std::optional(capacity_[slot]);
      });
  if (chosen.index < 0) return -1;
  const auto slot = static_cast<std::size_t>(chosen.index);
  if (slot == touched_) ++touched_;
  borrowed_[slot] = true;
  if (chosen.capacity < bytes) capacity_[slot] = runtime::slot_capacity(bytes);
  return chosen.index;
}

std::size_t ScratchAccount::bytes() const noexcept {
  return std::accumulate(capacity_.begin(), capacity_.end(), std::size_t{0});
}

std::int64_t TrainedLayer::merged_columns() const noexcept {
  const bool is_sum = merge == Merge::average || merge == Merge::weighted || merge == Merge::weighted_by_input;
  return is_sum ? width / heads : width;
}

std::int64_t TrainedLayer::mixing_columns() const noexcept {
  if (merge == Merge::gated_by_element) return width;
  return merge == Merge::weighted_by_input || merge == Merge::gated_by_head ? heads : 0;
}

std::size_t rows_bytes(std::int64_t rows, std::int64_t columns) noexcept {
  runtime::ScratchLayout layout;
  layout.add<float>(rows, layers::row_distance(columns));
  return layout.bytes();
}

std::size_t layer_saved_bytes(const TrainedLayer& layer) noexcept {
  runtime::ScratchLayout layout;
  // Query, key, value, and the heads; log-sum-exp; unfused: P.
  layout.add<std::byte>(attention_rows_bytes(layer));
  layout.add<float>(layer.rows(), layer.heads);
  layout.add<float>(layer.rows(), layer.heads, layer.kept_columns);
  // Before and after the first normalisation; before (Pre-LN: after) the second; before the activation.
  for (int buffer = 0; buffer < 3; ++buffer) layout.add<std::byte>(rows_bytes(layer.rows(), layer.width));
  layout.add<std::byte>(rows_bytes(layer.rows(), layer.hidden));
  return layout.bytes();
}

void walk_forward(const Engine& engine, const TrainedLayer& layer, bool gives, ScratchAccount& account) {
  walk_attention(engine, layer, account);
  // Post-LN: the sum before the second normalisation is kept, and so made.
  walk_feed_forward(engine, layer, gives || layer.norm == Norm::post, account);
}

void walk_backward(const Engine& engine, const TrainedLayer& layer, ScratchAccount& account) {
  // The gradient of each step's sum and, with dropout, that of its part's output.
  const Loan gradients(account, rows_bytes(layer.rows(), layer.width) * (layer.dropout > 0 ? 2 : 1));
  if (layer.norm == Norm::post) walk_norm_backward(layer, account);
  walk_feed_forward_backward(engine, layer, account);
  if (layer.norm == Norm::pre) walk_norm_backward(layer, account);
  if (layer.norm == Norm::post) walk_norm_backward(layer, account);
  walk_attention_backward(engine, layer, account);
  if (layer.norm == Norm::pre) walk_norm_backward(layer, account);
}

}  // namespace headlight::analysis
