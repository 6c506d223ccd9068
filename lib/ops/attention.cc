#include "headlight/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "ops/attention_check.h"
#include "ops/attention_plan.h"
#include "ops/attention_probabilities.h"
#include "ops/attention_rows.h"
#include "ops/check.h"
#include "runtime/parallel.h"

namespace headlight {
namespace {

using ops::AttentionCall;
using ops::AttentionRoute;
using ops::PackedHead;

// Small calls keep their scratch memory on the stack: borrowing a block would cost as much as they do.
constexpr std::size_t kStackBytes = 32 << 10;

PackedHead packed_head(const AttentionCall& call, float* keys, float* values, std::int64_t head) noexcept {
  return {keys + head * call.plan.packed_keys_size,
          call.plan.pack_values ? values + head * call.plan.packed_values_size : nullptr, 0};
}

// What the plan must know of packed sequences: their longest, and how many of its kind they would be.
void measure_sequences(const ops::AttentionSequences& sequences, ops::AttentionTraits& traits) noexcept {
  std::int64_t longest = 1;
  double squares = 0;
  for (std::int64_t s = 0; s < sequences.count(); ++s) {
    const std::int64_t keys = sequences(0, s).keys;
    longest = std::max(longest, keys);
    squares += static_cast<double>(keys) * static_cast<double>(keys);
  }
  traits.longest_sequence = longest;
  traits.equal_sequences = squares / (static_cast<double>(longest) * static_cast<double>(longest));
}

ops::AttentionTraits traits_of(const kernels::AttentionKernels& kernels, const View<const float, 4>& key,
                               const View<const float, 4>& value, const ops::AttentionSequences& sequences,
                               const AttentionOptions& options) noexcept {
  const std::int64_t vector_bytes = kernels.lanes * static_cast<std::int64_t>(sizeof(float));
  ops::AttentionTraits traits{};
  traits.with_probabilities = options.probabilities.per_head || options.probabilities.averaged;
  traits.values_aligned = reinterpret_cast<std::uintptr_t>(value.data) % static_cast<std::uintptr_t>(vector_bytes) == 0;
  for (int axis = 0; axis < 3; ++axis) {
    traits.values_aligned =
        traits.values_aligned && (value.extent(axis) == 1 || value.stride(axis) % kernels.lanes == 0);
  }
  traits.heads_apart = key.stride(2) > key.stride(1);
  traits.longest_sequence = value.extent(1);
  traits.equal_sequences = 1.0;
  if (!options.query_offsets.empty()) measure_sequences(sequences, traits);
  return traits;
}

// Units of some heads of a sample, for the routes in place.
std::int64_t units_of_sample(const AttentionCall& call) noexcept {
  return (call.sizes.key_value_heads + call.plan.unit_heads - 1) / call.plan.unit_heads;
}
ops::RowRange rows_of_unit(const AttentionCall& call, std::int64_t unit) noexcept {
  const std::int64_t units = units_of_sample(call);
  const std::int64_t head = unit % units * call.plan.unit_heads;
  return {unit / units, head, 0, call.plan.rows, std::min(call.plan.unit_heads, call.sizes.key_value_heads - head)};
}

void run_in_place(Engine& engine, const AttentionCall& call) noexcept {
  const std::int64_t units = call.sizes.batch * units_of_sample(call);
  runtime::parallel_for(engine, units, call.plan.lanes,
                        [&](std::int64_t unit, int lane) { ops::sweep_rows(call, lane, rows_of_unit(call, unit)); });
}

void run_split_keys(Engine& engine, const AttentionCall& call) noexcept {
  const std::int64_t blocks = call.plan.key_blocks;
  const std::int64_t units = call.sizes.batch * units_of_sample(call);
  runtime::parallel_for(engine, units * blocks, call.plan.lanes, [&](std::int64_t task, int lane) {
    ops::sweep_partially(call, lane, rows_of_unit(call, task / blocks), task % blocks);
  });
  runtime::parallel_for(engine, units, call.plan.lanes, [&](std::int64_t unit, int lane) {
    ops::merge_partials(call, lane, rows_of_unit(call, unit));
  });
}

void run_packed_by_head(Engine& engine, const AttentionCall& call) noexcept {
  const std::int64_t heads = call.sizes.key_value_heads;
  const ops::AttentionPlan& plan = call.plan;
  const std::int64_t sequences = call.sequences.count();
  // Heads are innermost, for their keys lie side by side.
  runtime::parallel_for(engine, call.sizes.batch * sequences * heads, plan.lanes, [&](std::int64_t task, int lane) {
    const std::int64_t head = task % heads;
    const std::int64_t s = task / heads % sequences;
    const std::int64_t sample = task / heads / sequences;
    const ops::AttentionSequence sequence = call.sequences(sample, s);
    PackedHead packed = packed_head(call, call.lane_part<float>(lane, plan.lane.packed_keys),
                                    call.lane_part<float>(lane, plan.lane.packed_values), 0);
    packed.first_key = sequence.first_key;
    ops::pack_head(call, sample, head, sequence.first_key, sequence.first_key + sequence.keys, packed);
    // Rows after the last sequence are padding, and its unit's business.
    const std::int64_t first = sequence.first_query * call.sizes.group;
    const std::int64_t last = s + 1 == sequences ? plan.rows : first + sequence.queries * call.sizes.group;
    for (std::int64_t row = first; row < last; row += plan.row_block) {
      ops::attend_rows(call, lane, {sample, head, row, std::min(row + plan.row_block, last)}, packed);
    }
  });
}

void run_packed_first(Engine& engine, const AttentionCall& call) noexcept {
  const std::int64_t heads = call.sizes.key_value_heads;
  const std::int64_t all_heads = call.sizes.batch * heads;
  const ops::AttentionPlan& plan = call.plan;
  const auto packed = [&](std::int64_t head) {
    return packed_head(call, call.part<float>(plan.all_packed_keys), call.part<float>(plan.all_packed_values), head);
  };
  runtime::parallel_for(engine, all_heads * plan.key_blocks, plan.lanes, [&](std::int64_t task, int) {
    const std::int64_t head = task / plan.key_blocks;
    const std::int64_t first = task % plan.key_blocks * plan.key_block;
    const std::int64_t last = std::min(first + plan.key_block, call.sizes.key_length);
    ops::pack_head(call, head / heads, head % heads, first, last, packed(head));
  });
  const std::int64_t blocks = (plan.rows + plan.row_block - 1) / plan.row_block;
  runtime::parallel_for(engine, all_heads * blocks, plan.lanes, [&](std::int64_t task, int lane) {
    const std::int64_t head = task / blocks;
    // Causal rows see the more the later they come: the long units first, so that the last to end is a short one.
    const std::int64_t first = (blocks - 1 - task % blocks) * plan.row_block;
    const std::int64_t last = std::min(first + plan.row_block, plan.rows);
    ops::attend_rows(call, lane, {head / heads, head % heads, first, last}, packed(head));
  });
}

void run_route(Engine& engine, const AttentionCall& call) noexcept {
  switch (call.plan.route) {
    case AttentionRoute::in_place:
      return run_in_place(engine, call);
    case AttentionRoute::split_keys:
      return run_split_keys(engine, call);
    case AttentionRoute::packed_by_head:
      return run_packed_by_head(engine, call);
    case AttentionRoute::packed_first:
      return run_packed_first(engine, call);
  }
}

void run(Engine& engine, AttentionCall& call, std::byte* scratch) noexcept {
  call.scratch = scratch;
  run_route(engine, call);
  const Probabilities& probabilities = call.options.probabilities;
  if (probabilities.per_head || probabilities.averaged) ops::write_probabilities(engine, call);
}

// exp(scale · s) = exp2(exponent_scale · (query_factor · s)), exponent_scale > 0.
void set_scale(AttentionCall& call) noexcept {
  constexpr double kLog2e = 1.44269504088896340736;
  const double scale = call.options.scale         ? static_cast<double>(*call.options.scale)
                       : call.sizes.head_dim == 0 ? 0.0
                                                  : 1.0 / std::sqrt(static_cast<double>(call.sizes.head_dim));
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  const auto factor = static_cast<float>(std::min(std::abs(scale) * kLog2e, kLargest));
  const bool vanishes = factor < std::numeric_limits<float>::min();
  call.exponent_scale = vanishes ? static_cast<float>(kLog2e) : factor;
  call.query_factor = vanishes ? 0.0f : scale < 0 ? -1.0f : 1.0f;
}

}  // namespace

void attention(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
               View<float, 4> out, const AttentionOptions& options) {
  const ops::AttentionSizes sizes = ops::check_attention("attention", query, key, value, out, options);
  if (sizes.query_heads == 0 || ops::writes_nothing(out, options)) return;
  const kernels::AttentionKernels& kernels = kernels::attention_kernels(engine.isa());
  const ops::AttentionSequences sequences{options, sizes.query_length, sizes.key_length};
  AttentionCall call{
      .query = query,
      .key = key,
      .value = value,
      .out = out,
      .options = options,
      .sizes = sizes,
      .sequences = sequences,
      .kernels = kernels,
      .plan = ops::plan_attention(engine, kernels, sizes, traits_of(kernels, key, value, sequences, options)),
      .exponent_scale = 0.0f,
      .query_factor = 0.0f,
      .dropout = ops::dropout_of(options),
      .scratch = nullptr};
  set_scale(call);
  if (call.plan.bytes <= kStackBytes && call.plan.lanes == 1) {
    alignas(128) std::byte stack[kStackBytes];
    run(engine, call, stack);
    return;
  }
  const runtime::Scratch scratch(engine, call.plan.bytes);
  run(engine, call, scratch.data());
}

std::size_t workspace_bytes(const Engine& engine, const AttentionShape& shape) {
  const ops::AttentionSizes sizes = ops::check_attention_shape("workspace_bytes", shape);
  return ops::attention_plan_bytes(engine, kernels::attention_kernels(engine.isa()), sizes);
}

void reserve(Engine& engine, const AttentionShape& shape) {
  const std::size_t bytes = workspace_bytes(engine, shape);
  runtime::reserve_scratch(engine, &bytes, 1);
}

}  // namespace headlight
