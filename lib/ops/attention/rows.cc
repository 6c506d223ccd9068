#include "ops/attention/rows.h"

#include <algorithm>

#include "ops/attention/row_block.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

RowStates partial_states(const AttentionCall& call, std::int64_t head, std::int64_t block) noexcept {
  const std::int64_t row = (head * call.plan.key_blocks + block) * call.plan.rows;
  return {
      part_of(call, call.plan.partial_maximum) + row, part_of(call, call.plan.partial_sums) + row * call.kernels.lanes,
      part_of(call, call.plan.partial_out) + row * call.plan.padded_value_dim, call.plan.key_blocks * call.plan.rows};
}

void write_padding(const AttentionCall& call, const RowRange& rows) noexcept {
  for (std::int64_t head = rows.key_value_head; head < rows.key_value_head + rows.heads; ++head) {
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      finish_padding(call, rows.sample, place_of(call, head, row));
    }
  }
}

}  // namespace

void pack_head(const AttentionCall& call, std::int64_t sample, std::int64_t key_value_head, std::int64_t first,
               std::int64_t last, PackedHead packed) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const AttentionPlan& plan = call.plan;
  std::int64_t s = call.sequences.of_key(first);
  for (; s < call.sequences.count(); ++s) {
    const AttentionSequence sequence = call.sequences(sample, s);
    if (sequence.first_key >= last) break;
    // Key blocks lie on the sequence's own grid.
    const std::int64_t blocks = divide_up(std::max<std::int64_t>(first - sequence.first_key, 0), plan.call_keys);
    const std::int64_t end = sequence.first_key + sequence.keys;
    for (std::int64_t key = sequence.first_key + blocks * plan.call_keys; key < std::min(last, end);
         key += plan.call_keys) {
      const std::int64_t keys = std::min(plan.call_keys, end - key);
      const kernels::KeyValueBlock block = call.keys.block(sample, key_value_head, key, keys);
      call.kernels.pack_keys(block.key, keys, sizes.head_dim, packed.keys + key * plan.key_words);
      // Behind other sequences lie the panels of the next one, which may be there already.
      if (call.sequences.count() == 1 || end == sizes.key_length) {
        clear_behind_panels(call.kernels, packed.keys + (key + keys) * plan.key_words, keys);
      }
      if (packed.values == nullptr) continue;
      call.kernels.pack_values(block.value, keys, sizes.value_dim, packed.values + key * plan.packed_value_dim,
                               packed_value_rows(call.kernels, keys) * plan.value_panel_width);
    }
  }
}

void attend_rows(const AttentionCall& call, int worker, const RowRange& range, PackedHead packed) noexcept {
  for_each_sequence(call, range, [&](const RowRange& rows, const AttentionSequence* sequence) {
    if (sequence == nullptr) return write_padding(call, rows);
    RowBlock(call, worker, rows, *sequence, packed).run(worker_states(call, worker));
  });
}

void sweep_partially(const AttentionCall& call, int worker, const RowRange& range, std::int64_t block_index) noexcept {
  for_each_sequence(call, range, [&](const RowRange& rows, const AttentionSequence* sequence) {
    if (sequence == nullptr) return;
    RowBlock block(call, worker, rows, *sequence, {});
    const std::int64_t first = std::max(block.first_key(), block_index * call.plan.key_block);
    const std::int64_t last = std::min(block.last_key(), (block_index + 1) * call.plan.key_block);
    if (first >= last) return;
    const std::int64_t head = rows.sample * call.sizes.key_value_heads + rows.key_value_head;
    const RowStates states = partial_states(call, head, block_index);
    const kernels::AttentionState at = states.row(call, rows.first);
    block.run_partially(first, last, {at.maximum, at.sums, at.out, states.head_stride});
  });
}

void merge_partials(const AttentionCall& call, int worker, const RowRange& range) noexcept {
  for_each_sequence(call, range, [&](const RowRange& rows, const AttentionSequence* sequence) {
    if (sequence == nullptr) return write_padding(call, rows);
    const RowBlock block(call, worker, rows, *sequence, {});
    for (std::int64_t n = 0; n < rows.heads * (rows.last - rows.first); ++n) {
      const std::int64_t of_sample = rows.key_value_head + n % rows.heads;
      const std::int64_t r = n / rows.heads;
      const RowPlace place = place_of(call, of_sample, rows.first + r);
      const KeyInterval& interval = block.interval(r);
      if (interval.begin >= interval.end) {
        finish_empty_row(call, rows.sample, place);
        continue;
      }
      const std::int64_t head = rows.sample * call.sizes.key_value_heads + of_sample;
      std::int64_t b = interval.begin / call.plan.key_block;
      kernels::AttentionState state = partial_states(call, head, b).row(call, rows.first + r);
      if (!call.options.sinks.empty()) {
        const kernels::AttentionState first = state;
        state = worker_states(call, worker).row(call, 0);
        begin_with_sink(call, place.head, state);
        call.kernels.merge(state, first, call.sizes.value_dim);
      }
      while (++b * call.plan.key_block < interval.end) {
        call.kernels.merge(state, partial_states(call, head, b).row(call, rows.first + r), call.sizes.value_dim);
      }
      finish_row(call, rows.sample, place, state);
    }
  });
}

}  // namespace headlight::ops
