#include "ops/attention_backward/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "ops/attention/rows.h"
#include "ops/attention/scale.h"
#include "ops/attention_backward/bias.h"
#include "ops/attention_backward/block.h"
#include "ops/attention_backward/large_rows.h"
#include "ops/empty_views.h"
#include "ops/rows/typed.h"
#include "runtime/cancellation.h"
#include "runtime/parallel.h"
#include "runtime/spin.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// Query rows that one task of the first pass takes, all heads of them.
constexpr std::int64_t kRowsOfTask = 64;

// Of these as many as are taken head by head.
constexpr std::int64_t kRowsOfHead = 16;

// f(sample, first row, behind the last) for all rows of queries.
template <class Function>
void for_each_rows(Engine& engine, const BackwardCall& call, const Function& f) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const std::int64_t blocks = divide_up(sizes.query_length, kRowsOfTask);
  runtime::parallel_for(engine, sizes.batch * blocks, call.plan.workers, [&](std::int64_t task, int) {
    const std::int64_t first = task % blocks * kRowsOfTask;
    f(task / blocks, first, std::min(first + kRowsOfTask, sizes.query_length));
  });
}
template <class Function>
void for_each_head_of_rows(Engine& engine, const BackwardCall& call, const Function& f) noexcept {
  for_each_rows(engine, call, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; i += kRowsOfHead) {
      for (std::int64_t h = 0; h < call.sizes.query_heads; ++h) f(b, h, i, std::min(kRowsOfHead, last - i));
    }
  });
}

// dS_ij gains P_ij times it. A row that sees nothing stays as it is: its log-sum-exp is a constant.
void take_log_sum_exp_gradient(Engine& engine, const BackwardCall& call) noexcept {
  const View<const float, 3>& gradient = call.operands.log_sum_exp_gradient;
  for_each_head_of_rows(engine, call, [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
    float* const delta = call.delta(b, h);
    for (std::int64_t i = first; i < first + rows; ++i) {
      if (call.operands.log_sum_exp(b, h, i) != -std::numeric_limits<float>::infinity()) delta[i] -= gradient(b, h, i);
    }
  });
}

// A place's heads, as rows.
kernels::Operand heads_at(const TypedView<4>& view, std::int64_t b, std::int64_t i) noexcept {
  return {.type = view.type, .stride = view.extent(2) > 1 ? view.stride(2) : 0, .data = row_at(view, b, i, 0)};
}

// All heads of one row after the other, as they lie in memory: 12 heads of 64, L = 4096, take half the time that they
// take head by head.
void begin_rows_of_all_heads(Engine& engine, const BackwardCall& call) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const AttentionBackwardOperands& operands = call.operands;
  const bool clears = call.gradients.query && !call.gradients.accumulate;
  for_each_rows(engine, call, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      call.backward.rows.row_dots(heads_at(operands.out_gradient, b, i), heads_at(operands.out, b, i),
                                  sizes.query_heads, sizes.value_dim, call.delta(b, 0) + i, sizes.query_length);
      if (!clears) continue;
      for (std::int64_t h = 0; h < sizes.query_heads; ++h)
        std::fill_n(call.query_sums(b, h, i).data, sizes.head_dim, 0.0f);
    }
  });
}

// Where each head lies by itself, or its sums of a narrow gradient do.
void begin_rows_of_each_head(Engine& engine, const BackwardCall& call) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const AttentionBackwardOperands& operands = call.operands;
  const MutableTypedView<4>& gradient = call.gradients.query;
  for_each_head_of_rows(engine, call, [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
    call.backward.rows.row_dots(rows_at(operands.out_gradient, b, first, h), rows_at(operands.out, b, first, h), rows,
                                sizes.value_dim, call.delta(b, h) + first, 1);
    if (!gradient) return;
    const kernels::Rows<float> sums = call.query_sums(b, h, first);
    if (!call.gradients.accumulate) {
      for (std::int64_t r = 0; r < rows; ++r) std::fill_n(sums.row(r), sizes.head_dim, 0.0f);
    } else if (call.narrow_sums != nullptr) {
      call.backward.rows.pad_rows(rows_at(gradient, b, first, h), rows, sizes.head_dim, sums.data,
                                  call.plan.padded_head_dim);
    }
  });
}

// Blocks of keys add to the query gradients in ascending order, row block by row block: block j adds to one when block
// j − 1 has passed it. Units are handed out in order, so the one that is waited for is being worked on, or done.
// What std::atomic_ref does, which clang's library has from version 19 on.
class Turn {
 public:
  // `here` is null for the last block of a sequence, `before` for the first.
  Turn(std::int64_t* before, std::int64_t* here) noexcept : before_(before), here_(here) {}

  // False where the call was told to end: the block that is waited for may never come.
  [[nodiscard]] bool wait_for(std::int64_t row_block) const noexcept {
    if (before_ == nullptr) return true;
    while (!runtime::spin_until(std::chrono::microseconds(1000),
                                [&] { return __atomic_load_n(before_, __ATOMIC_ACQUIRE) >= row_block; })) {
      if (runtime::is_cancelled()) return false;
    }
    return true;
  }
  void pass(std::int64_t row_block) const noexcept {
    if (here_ != nullptr) __atomic_store_n(here_, row_block, __ATOMIC_RELEASE);
  }

 private:
  std::int64_t* before_;
  std::int64_t* here_;
};

struct Unit {
  std::int64_t sample;
  std::int64_t head;  // of keys and values
  AttentionSequence sequence;
  std::int64_t first_key;  // within the sequence
};

Turn turn_of(const BackwardCall& call, const Unit& unit) noexcept {
  // A block that another one of its sequence follows is a whole one, so no two of them begin in the same key_block keys
  // of the tensor, whatever sequence they belong to.
  const std::int64_t key_block = call.plan.key_block;
  std::int64_t* const here = part_of(call, call.plan.progress) +
                             (unit.sample * call.sizes.key_value_heads + unit.head) * call.plan.key_blocks +
                             (unit.sequence.first_key + unit.first_key) / key_block;
  const bool is_last = unit.first_key + key_block >= unit.sequence.keys;
  return {unit.first_key == 0 ? nullptr : here - 1, is_last ? nullptr : here};
}

// Gradients of a block's keys and values, and its share of the query gradients.
void differentiate_unit(const BackwardCall& call, int worker, const Unit& unit) noexcept {
  const BackwardPlan& plan = call.plan;
  const TypedAttentionGradients& gradients = call.gradients;
  const std::int64_t keys = std::min(plan.key_block, unit.sequence.keys - unit.first_key);
  BackwardBlock block(call, worker, unit.sample, unit.head, unit.sequence, unit.first_key, keys);
  kernels::BackwardTile& tile = block.tile();
  if (gradients.key) tile.key_gradient = {part_of(call, worker, plan.key_gradient), plan.padded_head_dim};
  if (gradients.value) tile.value_gradient = {part_of(call, worker, plan.value_gradient), plan.padded_value_dim};
  if (gradients.key) std::fill_n(tile.key_gradient.data, keys * plan.padded_head_dim, 0.0f);
  if (gradients.value) std::fill_n(tile.value_gradient.data, keys * plan.padded_value_dim, 0.0f);

  const RowInterval rows = block.rows();
  const std::int64_t row_blocks = divide_up(unit.sequence.queries, plan.query_block);
  const Turn turn = turn_of(call, unit);
  for (std::int64_t g = 0; g < call.sizes.group; ++g) {
    const std::int64_t head = unit.head * call.sizes.group + g;
    for (std::int64_t n = rows.first / plan.query_block; n * plan.query_block < rows.last; ++n) {
      if (runtime::is_cancelled()) return;
      const std::int64_t row = n * plan.query_block;
      if (!block.take_rows(head, row, std::min(plan.query_block, unit.sequence.queries - row))) continue;
      if (gradients.query) {
        tile.query_gradient = call.query_sums(unit.sample, head, unit.sequence.first_query + row);
      }
      call.backward.products.score_gradients(tile);
      if (call.backward.products.key_value_gradients != nullptr) call.backward.products.key_value_gradients(tile);
      if (!gradients.query) continue;
      if (!turn.wait_for(g * row_blocks + n + 1)) return;
      call.backward.products.query_gradient(tile);
      turn.pass(g * row_blocks + n + 1);
    }
  }
  if (gradients.query) {
    if (!turn.wait_for(call.sizes.group * row_blocks)) return;
    turn.pass(call.sizes.group * row_blocks);
  }

  const std::int64_t key = unit.sequence.first_key + unit.first_key;
  const auto give = [&](const kernels::Rows<float>& sums, std::int64_t dim, float factor,
                        const MutableTypedView<4>& gradient) {
    // From a single row no stride leads to another: any is allowed, and asking for the memory ahead would multiply it.
    call.backward.rows.give_rows(sums.data, sums.stride, keys, dim, factor, gradients.accumulate, gradient.type,
                                 row_at(gradient, unit.sample, key, unit.head), keys > 1 ? gradient.stride(1) : 0);
  };
  if (gradients.key) give(tile.key_gradient, tile.head_dim, call.scale, gradients.key);
  if (gradients.value) give(tile.value_gradient, tile.value_dim, 1.0f, gradients.value);
}

// Zeros, which have the same bits in every type, in a row of a gradient.
void clear_row(const MutableTypedView<4>& gradient, std::int64_t sample, std::int64_t row, std::int64_t head) noexcept {
  std::memset(row_at(gradient, sample, row, head), 0,
              static_cast<std::size_t>(gradient.extent(3)) * bytes_of(gradient.type));
}

// Padding has no gradients.
void clear_keys(const BackwardCall& call, std::int64_t sample, std::int64_t head, std::int64_t first,
                std::int64_t last) noexcept {
  const TypedAttentionGradients& gradients = call.gradients;
  if (gradients.accumulate) return;
  for (std::int64_t j = first; j < last; ++j) {
    if (gradients.key) clear_row(gradients.key, sample, j, head);
    if (gradients.value) clear_row(gradients.value, sample, j, head);
  }
}

void differentiate_samples(Engine& engine, const BackwardCall& call) noexcept {
  const std::int64_t blocks = call.plan.key_blocks;
  const std::int64_t heads = call.sizes.key_value_heads;
  // All heads of a block of keys before the next block: workers then have several heads, and none waits for the rows of
  // another's.
  auto differentiate = [&](std::int64_t task, int worker) {
    const std::int64_t head = task % heads;
    const std::int64_t sample = task / heads / blocks;
    const AttentionSequence sequence = call.sequences(sample, 0);
    const std::int64_t first = task / heads % blocks * call.plan.key_block;
    const std::int64_t last = std::min(first + call.plan.key_block, call.sizes.key_length);
    if (first < sequence.keys) differentiate_unit(call, worker, {sample, head, sequence, first});
    clear_keys(call, sample, head, std::max(first, sequence.keys), last);
  };
  runtime::parallel_for(engine, call.sizes.batch * heads * blocks, call.plan.workers, differentiate,
                        runtime::HandOut::in_order);
}

// Blocks of sequence s begin at slot ⌊first key / key_block⌋ + s, which leaves room for all of them before the next
// sequence's: no list is needed to find a block.
void differentiate_packed(Engine& engine, const BackwardCall& call) noexcept {
  const std::int64_t key_block = call.plan.key_block;
  const std::int64_t sequences = call.sequences.count();
  const auto first_slot = [&](std::int64_t s) { return call.sequences(0, s).first_key / key_block + s; };
  const std::int64_t slots = call.sizes.key_length / key_block + sequences + 1;
  const std::int64_t heads = call.sizes.key_value_heads;
  auto differentiate = [&](std::int64_t task, int worker) {
    const std::int64_t slot = task / heads;  // all heads of a block first, as above
    std::int64_t s = 0;
    for (std::int64_t count = sequences; count > 1;) {  // the last sequence that begins at or before the slot
      const std::int64_t half = count / 2;
      if (first_slot(s + half) <= slot) s += half;
      count -= half;
    }
    const AttentionSequence sequence = call.sequences(0, s);
    const std::int64_t first = (slot - first_slot(s)) * key_block;
    if (first >= 0 && first < sequence.keys) differentiate_unit(call, worker, {0, task % heads, sequence, first});
  };
  runtime::parallel_for(engine, heads * slots, call.plan.workers, differentiate, runtime::HandOut::in_order);
}

// sink_part() of a row, whose log-sum-exp may be too large to tell it.
double sink_part_of(const BackwardCall& call, std::int64_t sample, std::int64_t head, std::int64_t query) noexcept {
  const float log_sum_exp = call.operands.log_sum_exp(sample, head, query);
  const float delta = call.delta(sample, head)[query];
  const float sink = call.options.sinks[static_cast<std::size_t>(head)];
  if (!is_of_large_row(log_sum_exp)) return sink_part(sink, log_sum_exp, delta);
  const kernels::RunningSum& row = call.running_sums_of(sample, head)[query];
  const double distance = static_cast<double>(in_log2(sink)) - static_cast<double>(row.maximum);
  return std::exp2(distance) / static_cast<double>(row.sum) * static_cast<double>(delta);
}

// Minus the gradient of a head's sink, of those rows that belong to one sum: in float64, of a sample over rows in
// ascending order, then over samples: so whoever has the rows of all samples one after another can add it up.
float sum_of_sink(const BackwardCall& call, std::int64_t head, std::span<const RowsOfSum> rows,
                  std::int64_t sum) noexcept {
  double all = 0;
  for (std::int64_t b = 0; b < call.sizes.batch; ++b) {
    double of_sample = 0;
    for (const RowsOfSum& some : rows) {
      if (some.sum != sum) continue;
      for (std::int64_t i = some.first; i < some.first + some.count; ++i) of_sample += sink_part_of(call, b, head, i);
    }
    all += of_sample;
  }
  return static_cast<float>(all);
}

void differentiate_sinks(Engine& engine, const BackwardCall& call) noexcept {
  const RowsOfSum all = {0, 0, call.sizes.query_length};
  runtime::parallel_for(engine, call.sizes.query_heads, call.plan.workers, [&](std::int64_t h, int) {
    float& gradient = call.gradients.sinks(h);
    gradient = (call.gradients.accumulate ? gradient : 0.0f) - sum_of_sink(call, h, {&all, 1}, 0);
  });
}

void differentiate_sinks_by_sums(Engine& engine, const BackwardCall& call) noexcept {
  const View<float, 2>& sinks = call.sums.sinks;
  const std::int64_t heads = sinks.extent(1);
  runtime::parallel_for(engine, sinks.size(), call.plan.workers, [&](std::int64_t unit, int) {
    const std::int64_t sum = unit / heads, h = unit % heads;
    sinks(sum, h) = 0.0f - sum_of_sink(call, h, call.sums.rows, sum);
  });
}

// What has memory.
void differentiate_laid(Engine& engine, std::string_view operation, const AttentionBackwardOperands& operands,
                        const TypedAttentionGradients& gradients, const AttentionOptions& options,
                        const AttentionSizes& sizes, const kernels::AttentionKernels& kernels,
                        const kernels::AttentionBackwardKernels& backward, const RowSums& sums) {
  // There is room for their sums whether there are any or not: what a call takes is told by its sizes alone.
  const bool has_large = has_large_rows(operands.log_sum_exp);
  BackwardCall call{.operands = operands,
                    .keys = {operands.key, operands.value},
                    .gradients = gradients,
                    .options = options,
                    .sizes = sizes,
                    .sequences = {options, sizes.query_length, sizes.key_length},
                    .kernels = kernels,
                    .backward = backward,
                    .plan = plan_attention_backward(engine, kernels, sizes,
                                                    {.query_sums = is_narrow(gradients.query), .running_sums = true}),
                    .scale = 0.0f,
                    .modifiers = {},
                    .dropout = dropout_of(options),
                    .heads = {.all = sizes.query_heads},
                    .scratch = nullptr,
                    .deltas = nullptr,
                    .running_sums = nullptr,
                    .sums = sums,
                    .narrow_sums = nullptr};
  set_scale(call);
  const runtime::Scratch scratch(engine, call.plan.bytes(), operation);
  call.scratch = scratch.data();
  call.deltas = part_of(call, call.plan.delta);
  if (has_large) call.running_sums = part_of(call, call.plan.running_sums);
  if (is_narrow(gradients.query)) call.narrow_sums = part_of(call, call.plan.query_sums);
  std::fill_n(part_of(call, call.plan.progress), sizes.batch * sizes.key_value_heads * call.plan.key_blocks, 0);
  begin_rows(engine, call);
  if (has_large) sum_large_rows(engine, call);
  if (gradients.query || gradients.key || gradients.value) {
    (options.query_offsets.empty() ? differentiate_samples : differentiate_packed)(engine, call);
  }
  if (call.narrow_sums != nullptr) round_query_gradient(engine, call);
  if (gradients.bias) differentiate_bias(engine, call);
  if (gradients.sinks) differentiate_sinks(engine, call);
  if (sums.sinks) differentiate_sinks_by_sums(engine, call);
  if (sums.distances) differentiate_distances(engine, call);
}

}  // namespace

double sink_part(float sink, float log_sum_exp, float delta) noexcept {
  if (log_sum_exp == -INFINITY) return 0.0 * static_cast<double>(delta);
  return std::exp(static_cast<double>(sink) - static_cast<double>(log_sum_exp)) * static_cast<double>(delta);
}

void begin_rows(Engine& engine, const BackwardCall& call) noexcept {
  const TypedView<4>& rows = call.operands.out_gradient;
  const bool by_head = call.narrow_sums != nullptr || rows.stride(2) > rows.stride(1);
  (by_head ? begin_rows_of_each_head : begin_rows_of_all_heads)(engine, call);
  if (call.operands.log_sum_exp_gradient) take_log_sum_exp_gradient(engine, call);
}

void round_query_gradient(Engine& engine, const BackwardCall& call) noexcept {
  const MutableTypedView<4>& gradient = call.gradients.query;
  for_each_head_of_rows(engine, call, [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t rows) {
    const kernels::Rows<float> sums = call.query_sums(b, h, first);
    call.kernels.narrow_rows(sums.data, sums.stride, rows, call.sizes.head_dim, gradient.type,
                             row_at(gradient, b, first, h), gradient.stride(1));
  });
}

void differentiate(Engine& engine, std::string_view operation, const AttentionBackwardOperands& operands,
                   const TypedAttentionGradients& gradients, const AttentionOptions& options,
                   const AttentionSizes& sizes, const kernels::AttentionKernels& kernels,
                   const kernels::AttentionBackwardKernels& backward, const RowSums& sums) {
  if (!has_empty_views(sizes)) {
    return differentiate_laid(engine, operation, operands, gradients, options, sizes, kernels, backward, sums);
  }
  float anywhere;
  AttentionBackwardOperands laid = operands;
  TypedAttentionGradients to = gradients;
  lay_empty_views(anywhere, laid.query, laid.key, laid.value, laid.out, laid.out_gradient);
  for (MutableTypedView<4>* const view : {&to.query, &to.key, &to.value}) {
    if (*view) lay_empty_views(anywhere, *view);
  }
  differentiate_laid(engine, operation, laid, to, options, sizes, kernels, backward, sums);
}

}  // namespace headlight::ops
