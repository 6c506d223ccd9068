#include "ops/attention/routes.h"

#include <algorithm>

#include "ops/attention/shown_rows.h"
#include "runtime/engine_state.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// Where keys and values lie.
void set_layout(const kernels::AttentionKernels& kernels, const TypedView<4>& key, const TypedView<4>& value,
                AttentionTraits& traits) noexcept {
  const std::int64_t vector_bytes = kernels.lanes * static_cast<std::int64_t>(sizeof(float));
  traits.values_aligned = value.type == NumberType::float32 &&
                          reinterpret_cast<std::uintptr_t>(value.data) % static_cast<std::uintptr_t>(vector_bytes) == 0;
  for (int axis = 0; axis < 3; ++axis) {
    traits.values_aligned =
        traits.values_aligned && (value.extent(axis) == 1 || value.stride(axis) % kernels.lanes == 0);
  }
  traits.heads_apart = key.stride(2) > key.stride(1);
}

// Units of some heads of a sample, for the routes in place.
std::int64_t units_of_sample(const AttentionCall& call) noexcept {
  return divide_up(call.sizes.key_value_heads, call.plan.unit_heads);
}
RowRange rows_of_unit(const AttentionCall& call, std::int64_t unit) noexcept {
  const std::int64_t units = units_of_sample(call);
  const std::int64_t head = unit % units * call.plan.unit_heads;
  return {unit / units, head, 0, call.plan.rows, std::min(call.plan.unit_heads, call.sizes.key_value_heads - head)};
}

void run_in_place(Engine& engine, const AttentionCall& call) noexcept {
  const std::int64_t units = call.sizes.batch * units_of_sample(call);
  runtime::parallel_for(engine, units, call.plan.workers, [&](std::int64_t unit, int worker) {
    attend_rows(call, worker, rows_of_unit(call, unit), {});
  });
}

void run_split_keys(Engine& engine, const AttentionCall& call) noexcept {
  const std::int64_t blocks = call.plan.key_blocks;
  const std::int64_t units = call.sizes.batch * units_of_sample(call);
  runtime::parallel_for(engine, units * blocks, call.plan.workers, [&](std::int64_t task, int worker) {
    sweep_partially(call, worker, rows_of_unit(call, task / blocks), task % blocks);
  });
  runtime::parallel_for(engine, units, call.plan.workers,
                        [&](std::int64_t unit, int worker) { merge_partials(call, worker, rows_of_unit(call, unit)); });
}

// f(range, worker) for every unit of so many rows. One worker that packs block by block takes all heads of a block of
// queries one after the other: they lie side by side, and their pages are translated once. Several workers keep to a
// head each, whose keys stay in their caches.
template <class Function>
void for_units_of_rows(Engine& engine, const AttentionCall& call, std::int64_t rows, Function f) noexcept {
  const std::int64_t heads_of_sample = call.sizes.key_value_heads;
  const std::int64_t heads = call.sizes.batch * heads_of_sample;
  const std::int64_t blocks = divide_up(call.plan.rows, rows);
  const bool heads_innermost = call.plan.workers == 1 && call.plan.route == AttentionRoute::packed_by_block;
  // Causal rows see the more the later they come: the long units of a head first, so that the last to end is a short
  // one, and where a head is all there is, handed out in that order.
  const bool in_order = call.options.causal != Causal::none && heads < call.plan.workers;
  runtime::parallel_for(
      engine, heads * blocks, call.plan.workers,
      [&](std::int64_t task, int worker) {
        const std::int64_t head = heads_innermost ? task % heads : task / blocks;
        const std::int64_t block = heads_innermost ? task / heads : task % blocks;
        const std::int64_t first = (blocks - 1 - block) * rows;
        f(RowRange{head / heads_of_sample, head % heads_of_sample, first, std::min(first + rows, call.plan.rows)},
          worker);
      },
      in_order ? runtime::HandOut::in_order : runtime::HandOut::in_shares);
}

// Whether the longest sequence of a head, in so many parts, is little enough of the whole that nobody waits for one of
// them long.
bool sequences_fill_workers(const AttentionCall& call, std::int64_t parts) noexcept {
  if (call.plan.workers == 1) return true;
  double all = 0;
  double longest = 0;
  for (std::int64_t b = 0; b < call.sizes.batch; ++b) {
    for (std::int64_t s = 0; s < call.sequences.count(); ++s) {
      const AttentionSequence sequence = call.sequences(b, s);
      const double pairs = static_cast<double>(sequence.queries) * static_cast<double>(sequence.keys);
      all += pairs;
      longest = std::max(longest, pairs);
    }
  }
  return longest * 2.0 * call.plan.workers <= all * static_cast<double>(call.sizes.key_value_heads * parts);
}

// Packed sequences that fill the workers are units by themselves: no block of rows ends within one, whose keys would
// then be packed twice. Heads are innermost, for they lie side by side: the pages of a sequence are translated once.
void run_sequences(Engine& engine, const AttentionCall& call) noexcept {
  const std::int64_t heads = call.sizes.key_value_heads;
  const std::int64_t sequences = call.sequences.count();
  runtime::parallel_for(engine, heads * sequences, call.plan.workers, [&](std::int64_t task, int worker) {
    const std::int64_t s = task / heads;
    const AttentionSequence sequence = call.sequences(0, s);
    const std::int64_t first = sequence.first_query * call.sizes.group;
    const std::int64_t last = first + sequence.queries * call.sizes.group;
    for (std::int64_t row = first; row < last; row += call.plan.row_block) {
      attend_rows(call, worker, {0, task % heads, row, std::min(row + call.plan.row_block, last)}, {});
    }
  });
}

// Rows of a unit where samples may differ in length: one much longer than the others is shared, though its keys are
// packed once for each part then.
std::int64_t rows_of_unit_of_samples(const AttentionCall& call) noexcept {
  constexpr std::int64_t kParts = 4;
  const std::int64_t rows = call.plan.row_block;
  const bool uneven = !call.options.query_lengths.empty() || !call.options.key_lengths.empty();
  if (!uneven || sequences_fill_workers(call, divide_up(call.plan.rows, rows))) return rows;
  return std::min(round_up(divide_up(rows, kParts), call.kernels.query_rows), rows);
}

void run_packed_by_block(Engine& engine, const AttentionCall& call) noexcept {
  if (!call.options.query_offsets.empty() && sequences_fill_workers(call, 1)) return run_sequences(engine, call);
  for_units_of_rows(engine, call, rows_of_unit_of_samples(call),
                    [&](const RowRange& range, int worker) { attend_rows(call, worker, range, {}); });
}

void run_packed_first(Engine& engine, const AttentionCall& call) noexcept {
  const std::int64_t heads = call.sizes.key_value_heads;
  const AttentionPlan& plan = call.plan;
  const auto packed = [&](std::int64_t head) {
    return PackedHead{
        part_of(call, plan.all_packed_keys) + head * plan.packed_keys_size,
        plan.pack_values ? part_of(call, plan.all_packed_values) + head * plan.packed_values_size : nullptr};
  };
  const std::int64_t blocks = divide_up(call.sizes.key_length, plan.call_keys);
  runtime::parallel_for(engine, call.sizes.batch * heads * blocks, plan.workers, [&](std::int64_t task, int) {
    const std::int64_t head = task / blocks;
    const std::int64_t first = task % blocks * plan.call_keys;
    const std::int64_t last = std::min(first + plan.call_keys, call.sizes.key_length);
    pack_head(call, head / heads, head % heads, first, last, packed(head));
  });
  for_units_of_rows(engine, call, plan.row_block, [&](const RowRange& range, int worker) {
    attend_rows(call, worker, range, packed(range.sample * heads + range.key_value_head));
  });
}

void run_route(Engine& engine, const AttentionCall& call) noexcept {
  switch (call.plan.route) {
    case AttentionRoute::in_place:
      return run_in_place(engine, call);
    case AttentionRoute::split_keys:
      return run_split_keys(engine, call);
    case AttentionRoute::packed_by_block:
      return run_packed_by_block(engine, call);
    case AttentionRoute::packed_first:
      return run_packed_first(engine, call);
  }
}

void run(Engine& engine, AttentionCall& call, std::byte* scratch) noexcept {
  call.scratch = scratch;
  const Probabilities& probabilities = call.options.probabilities;
  const bool with_probabilities = probabilities.per_head || probabilities.averaged;
  if (with_probabilities && !call.plan.saves_all_rows) {
    auto* const asked = part_of(call, call.plan.asked_rows);
    std::sort(asked, std::copy(probabilities.rows.begin(), probabilities.rows.end(), asked));
  }
  run_route(engine, call);
  if (with_probabilities) write_probabilities(engine, call);
  if (call.options.scores) write_scores(engine, call);
}

// A frame of its own: calls that borrow their memory have none of it.
[[gnu::noinline]] void run_on_stack(Engine& engine, AttentionCall& call) noexcept {
  alignas(128) std::byte scratch[AttentionPlan::kStackBytes];
  run(engine, call, scratch);
}

}  // namespace

void clear_average(const View<float, 3>& averaged) noexcept {
  for (std::int64_t b = 0; b < averaged.extent(0); ++b) {
    for (std::int64_t r = 0; r < averaged.extent(1); ++r) {
      std::fill_n(&averaged(b, r, 0), averaged.extent(2), 0.0f);
    }
  }
}

void attend(Engine& engine, std::string_view name, const AttentionOperands& operands, const AttentionOptions& options,
            const AttentionSizes& sizes, const kernels::AttentionKernels& kernels, const AttentionScale& scale) {
  const auto& [query, key, value, out, key_scales, value_scales] = operands;
  const AttentionSequences sequences{options, sizes.query_length, sizes.key_length};
  AttentionTraits traits = traits_of(options, sizes, scale);
  traits.copies_queries = traits.copies_queries || query.type != NumberType::float32;
  set_layout(kernels, key, value, traits);
  traits.follows_memory = engine.state().follows_memory;
  traits.reads_two_streams = engine.state().reads_two_streams;
  AttentionCall call{.query = query,
                     .keys = {key, value, key_scales, value_scales},
                     .out = out,
                     .options = options,
                     .sizes = sizes,
                     .sequences = sequences,
                     .kernels = kernels,
                     .plan = plan_attention(engine, kernels, sizes, traits),
                     .scale = scale,
                     .modifiers = score_modifiers(options, scale.exponent_scale),
                     .dropout = dropout_of(options),
                     .heads = {.all = sizes.query_heads},
                     .scratch = nullptr};
  if (call.plan.borrowed() == 0) return run_on_stack(engine, call);
  const runtime::Scratch scratch(engine, call.plan.bytes(), name);
  run(engine, call, scratch.data());
}

}  // namespace headlight::ops
