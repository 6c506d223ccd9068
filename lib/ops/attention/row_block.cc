#include "ops/attention/row_block.h"

#include <algorithm>

#include "runtime/cancellation.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// Of keys [first, last) of the block, whose rows in the tensor are given, too. Packed values are read instead where
// they are floats, for they are in a cache.
bool values_are_finite(const AttentionCall& call, const kernels::KeyValueBlock& block, const kernels::Operand& rows,
                       std::int64_t head, std::int64_t first, std::int64_t last) noexcept {
  const std::int64_t value_dim = call.sizes.value_dim;
  const bool packed = block.value.layout == kernels::OperandLayout::panels && call.kernels.numbers_of_word == 1;
  const kernels::Operand& value = packed ? block.value : rows;
  if (!packed) {
    const kernels::Operand of_head =
        value.from(head * call.keys.value_head_stride(), head * call.keys.value_scale_head_stride());
    return call.kernels.all_finite(of_head.from_row(first), last - first, value_dim);
  }
  const std::int64_t width = call.plan.value_panel_width;
  for (std::int64_t column = 0; column < value_dim; column += width) {
    const float* const panel = value.floats() + column * block.count + first * width;
    if (!call.kernels.all_finite({.stride = width, .data = panel}, last - first, std::min(width, value_dim - column))) {
      return false;
    }
  }
  return true;
}

kernels::Operand panels(const float* packed) noexcept {
  return {.layout = kernels::OperandLayout::panels, .data = packed};
}

}  // namespace

RowBlock::RowBlock(const AttentionCall& call, int worker, const RowRange& range, const AttentionSequence& sequence,
                   PackedHead packed) noexcept
    : call_(call),
      worker_(worker),
      range_(range),
      sequence_(sequence),
      packed_(packed),
      intervals_(part_of(call, worker, call.plan.intervals)),
      count_(range.last - range.first),
      tile_rows_(rows_of_call(call.kernels, count_)),
      even_rows_(call.sizes.group == 1 || range.first / call.sizes.group == (range.last - 1) / call.sizes.group),
      begin_(part_of(call, worker, call.plan.seen_begin)),
      end_(part_of(call, worker, call.plan.seen_end)),
      tiles_(part_of(call, worker, call.plan.tiles)) {
  for (std::int64_t r = 0, tile = 0; r < count_; r += tile_rows_) tiles_[tile++] = TileState::empty;
  find_intervals();
}

void RowBlock::find_intervals() noexcept {
  const IntervalRule rule(call_.options, sequence_);
  same_intervals_ = rule.same_for_all_rows();
  const std::int64_t group = call_.sizes.group;
  std::int64_t query = range_.first / group - sequence_.first_query;
  KeyInterval interval = rule(query);
  for (std::int64_t r = 0, of_group = range_.first % group; r < count_; ++r) {
    intervals_[r] = interval;
    if (interval.begin < interval.end) {
      first_key_ = std::min(first_key_, interval.begin);
      last_key_ = std::max(last_key_, interval.end);
    }
    if (same_intervals_) return;
    if (++of_group < group) continue;
    of_group = 0;
    interval = rule(++query);
  }
}

// Whether rows that lie so far apart are words of four bytes as the kernels multiply them: floats, or pairs.
bool RowBlock::are_words(const kernels::Operand& rows, std::int64_t row_stride,
                         std::int64_t head_stride) const noexcept {
  const std::int64_t of_word = call_.kernels.numbers_of_word;
  constexpr std::int64_t kBytes = sizeof(float);
  return kernels::bytes_of_number(rows.type) * of_word == kBytes && row_stride % of_word == 0 &&
         head_stride % of_word == 0 && reinterpret_cast<std::uintptr_t>(rows.data) % kBytes == 0;
}

// Query rows in place where they are words that one stride leads through, else copied; and where each row's mask and
// bias lie.
void RowBlock::prepare(const RowStates& states) noexcept {
  const TypedView<4>& query = call_.query;
  const RowPlace first = place_of(call_, range_.key_value_head, range_.first);
  const int row_axis = call_.sizes.group == 1 ? 1 : 2;
  if (call_.out.type != NumberType::float32) {
    out_ = states.out;
    out_stride_ = call_.plan.padded_value_dim;
    out_head_stride_ = states.head_stride * out_stride_;
  } else if (even_rows_) {
    out_ = static_cast<float*>(row_at(call_.out, range_.sample, first.query, first.head));
    out_stride_ = call_.out.stride(row_axis);
    out_head_stride_ = call_.sizes.group * call_.out.stride(2);
  }
  const kernels::Operand rows_of_query = operand_at(query, range_.sample, first.query, first.head);
  const std::int64_t row_stride = query.stride(row_axis);
  const std::int64_t head_stride = call_.sizes.group * query.stride(2);
  const bool are_filled_up = call_.plan.key_words * call_.kernels.numbers_of_word != call_.sizes.head_dim;
  if (even_rows_ && !are_filled_up && call_.scale.query_factor == 1.0f &&
      are_words(rows_of_query, row_stride, head_stride)) {
    query_ = rows_of_query.words();
    query_stride_ = row_stride / call_.kernels.numbers_of_word;
    query_head_stride_ = head_stride / call_.kernels.numbers_of_word;
  } else {
    float* copy = part_of(call_, worker_, call_.plan.query);
    query_ = copy;
    query_stride_ = call_.plan.key_words;
    query_head_stride_ = count_ * query_stride_;
    for (std::int64_t head = 0; head < range_.heads; ++head) {
      for (std::int64_t r = 0; r < count_;) {
        // Those that one stride leads through: all of a head, or those of a group.
        const RowPlace place = place_of(call_, range_.key_value_head + head, range_.first + r);
        const std::int64_t group = call_.sizes.group;
        const std::int64_t rows = group == 1 ? count_ : std::min(group - place.head % group, count_ - r);
        kernels::Operand from = operand_at(query, range_.sample, place.query, place.head);
        from.stride = query.stride(row_axis);
        call_.kernels.copy_rows(from, call_.scale.query_factor, rows, call_.sizes.head_dim, copy);
        r += rows;
        copy += rows * query_stride_;
      }
    }
  }
  if (has_row_modifiers(call_.options)) prepare_modifiers();
  if (call_.options.dropout.probability != 0) prepare_dropout();
}

// function(head, r, place) for row r of each head: rows of one query head after another, in the order of their queries.
template <class Function>
void RowBlock::for_each_row(const Function& function) const noexcept {
  const std::int64_t group = call_.sizes.group;
  for (std::int64_t head = 0; head < range_.heads; ++head) {
    for (std::int64_t first = 0; first < std::min(group, count_); ++first) {
      RowPlace place = place_of(call_, range_.key_value_head + head, range_.first + first);
      for (std::int64_t r = first; r < count_; r += group, ++place.query) function(head, r, place);
    }
  }
}

void RowBlock::prepare_dropout() noexcept {
  auto* const places = part_of(call_, worker_, call_.plan.dropout_places);
  for_each_row([&](std::int64_t head, std::int64_t r, const RowPlace& place) {
    places[head * count_ + r] = {static_cast<std::uint32_t>(place.query - sequence_.first_query),
                                 call_.heads(range_.sample, place.head)};
  });
}

void RowBlock::prepare_modifiers() noexcept {
  const IntervalRule rule(call_.options, sequence_);
  const RowModifiers rows = row_modifiers(call_, worker_);
  const std::int64_t position = sequence_.first_key + rule.position(-sequence_.first_query);
  for_each_row([&](std::int64_t head, std::int64_t r, const RowPlace& place) {
    rows.set(call_.options, head * count_ + r, range_.sample, place.head, place.query, position + place.query);
  });
}

// Keys [first_key, last_key) of the sequence, block by block.
void RowBlock::attend(std::int64_t first_key, std::int64_t last_key, const RowStates& states, bool finish) noexcept {
  prepare(states);
  const AttentionPlan& plan = call_.plan;
  const AttentionSizes& sizes = call_.sizes;
  const bool drops = call_.options.dropout.probability != 0;
  for (std::int64_t key = first_key / plan.call_keys * plan.call_keys; key < last_key; key += plan.call_keys) {
    if (runtime::is_cancelled()) return;
    const std::int64_t keys = std::min(plan.call_keys, sequence_.keys - key);
    const std::int64_t first_seen = std::max<std::int64_t>(first_key - key, 0);
    const std::int64_t last_seen = std::min(last_key - key, keys);
    // Made in one piece, every field named: clearing it first, or copying it for each tile, would show in a call of few
    // rows.
    kernels::AttentionSweep sweep{
        .block = {.query = {.data = query_, .stride = query_stride_, .count = count_, .head_dim = plan.key_words},
                  .keys = key_block(key, keys, first_seen, last_seen),
                  .seen = {.begin = begin_, .end = end_, .same_for_all = same_intervals_},
                  .modifiers = call_.modifiers,
                  .dropout = {.numbers = drops ? &call_.dropout : nullptr, .places = nullptr, .first_key = key},
                  .scores = part_of(call_, worker_, plan.scores),
                  .scores_stride = plan.scores_stride,
                  .state = {.first = true,
                            .sink_only = false,
                            .maximum = nullptr,
                            .sums = nullptr,
                            .out = nullptr,
                            .out_stride = plan.padded_value_dim},
                  .ends = {.out = nullptr, .out_stride = out_stride_, .sum = nullptr}},
        .heads = range_.heads,
        .query_head_stride = query_head_stride_,
        .key_head_stride = call_.keys.key_head_stride(),
        .value_head_stride = call_.keys.value_head_stride(),
        .key_scale_head_stride = call_.keys.key_scale_head_stride(),
        .value_scale_head_stride = call_.keys.value_scale_head_stride(),
        .out_head_stride = out_head_stride_,
        .state_head_stride = states.head_stride,
        .mask_head_stride = count_,
        .value_sums = part_of(call_, worker_, plan.value_sums),
        .tile_room = part_of(call_, worker_, plan.tile_room),
        .from_memory = reads_memory(sizes, keys, range_.heads),
        .from_far_memory = plan.from_far_memory,
        .follows_memory = plan.follows_memory};
    sweep.block.modifiers.first_key = sequence_.first_key + key;
    // Tiles of registers take so many packed keys at once, whichever of them a row sees.
    const int at_once = call_.kernels.keys_at_once;
    const bool filled_keys_hide = at_once > 1 && sweep.block.keys.key.layout == kernels::OperandLayout::panels &&
                                  (!same_intervals_ || first_seen > 0 || last_seen < keys);
    if (call_.options.mask || filled_keys_hide) {
      const std::int64_t first = first_seen & -at_once, last = std::min(kernels::filled_up(last_seen, at_once), keys);
      kernels::KeyValueBlock& block = sweep.block.keys;
      const kernels::Operand rows =
          call_.keys.block(range_.sample, range_.key_value_head, sequence_.first_key + key, keys).value;
      for (std::int64_t head = 0; head < range_.heads && !block.values_not_finite; ++head) {
        block.values_not_finite = !values_are_finite(call_, block, rows, head, first, last);
      }
    }
    attend_key_block(sweep, key, states, finish);
  }
}

kernels::KeyValueBlock RowBlock::key_block(std::int64_t first_key, std::int64_t count, std::int64_t first_seen,
                                           std::int64_t last_seen) const noexcept {
  const AttentionPlan& plan = call_.plan;
  const std::int64_t tensor_key = sequence_.first_key + first_key;
  kernels::KeyValueBlock block = call_.keys.block(range_.sample, range_.key_value_head, tensor_key, count);
  if (packed_.keys != nullptr) block.key = panels(packed_.keys + tensor_key * plan.key_words);
  if (packed_.values != nullptr) block.value = panels(packed_.values + tensor_key * plan.packed_value_dim);
  if (plan.route != AttentionRoute::packed_by_block) return block;

  const kernels::KeyValueBlock rows = block;
  const std::int64_t panel = call_.kernels.key_panel;
  const std::int64_t begin = first_seen / panel * panel;
  const std::int64_t end = std::min(round_up(last_seen, panel), count);
  auto* keys = part_of(call_, worker_, plan.packed_keys);
  call_.kernels.pack_keys(rows.key.from_row(begin), end - begin, call_.sizes.head_dim, keys + begin * plan.key_words);
  clear_behind_panels(call_.kernels, keys + end * plan.key_words, end);
  block.key = panels(keys);
  if (!plan.pack_values) return block;
  auto* values = part_of(call_, worker_, plan.packed_values);
  const std::int64_t of_word = call_.kernels.numbers_of_word;
  call_.kernels.pack_values(rows.value.from_row(begin), end - begin, call_.sizes.value_dim,
                            values + begin / of_word * plan.value_panel_width,
                            packed_value_rows(call_.kernels, count) * plan.value_panel_width);
  block.value = panels(values);
  return block;
}

// One block of keys for all tiles of rows.
void RowBlock::attend_key_block(kernels::AttentionSweep& sweep, std::int64_t first_key, const RowStates& states,
                                bool finish) noexcept {
  const AttentionPlan& plan = call_.plan;
  kernels::AttentionBlock& block = sweep.block;
  TileState* next_tile = tiles_;
  std::int64_t last_of_tile = 0;
  for (std::int64_t r = 0; r < count_; r += tile_rows_) {
    TileState& tile = *next_tile++;
    block.query.count = std::min(tile_rows_, count_ - r);
    if (r == 0 || !same_intervals_) {
      last_of_tile = 0;
      bool sees_any = false;
      for (std::int64_t row = 0; row < block.query.count; ++row) {
        const KeyInterval& seen = interval(r + row);
        begin_[row] = static_cast<std::int32_t>(std::clamp<std::int64_t>(seen.begin - first_key, 0, block.keys.count));
        end_[row] = static_cast<std::int32_t>(std::clamp<std::int64_t>(seen.end - first_key, 0, block.keys.count));
        sees_any = sees_any || begin_[row] < end_[row];
        last_of_tile = std::max(last_of_tile, seen.end);
      }
      if (!sees_any) continue;
    }
    block.query.data = query_ + r * query_stride_;
    row_modifiers(call_, worker_).give(call_.options, r, block.modifiers);
    if (block.dropout.numbers != nullptr) {
      block.dropout.places = part_of(call_, worker_, plan.dropout_places) + r;
    }
    const kernels::AttentionState state = states.row(call_, r);
    block.state.maximum = state.maximum;
    block.state.sums = state.sums;
    block.state.out = state.out;
    block.state.first = tile == TileState::empty;
    block.state.sink_only = tile == TileState::sink;
    const bool last = finish && out_ != nullptr && last_of_tile <= first_key + block.keys.count;
    block.ends.out = last ? out_ + r * out_stride_ : nullptr;
    block.ends.sum = part_of(call_, worker_, plan.final_sum) + r;
    tile = last ? TileState::finished : TileState::kept;
    if (block.keys.key.layout == kernels::OperandLayout::panels) {
      call_.kernels.attend_block(block);
    } else {
      call_.kernels.attend_sweep(sweep);
    }
  }
}

void RowBlock::finish(const RowStates& states) const noexcept {
  const TileState* next_tile = tiles_;
  for (std::int64_t first = 0; first < count_; first += tile_rows_) {
    const TileState tile = *next_tile++;
    const bool narrows = call_.out.type != NumberType::float32;
    if (tile == TileState::finished && !narrows && !wants_row_sums(call_)) continue;
    for (std::int64_t head = 0; head < range_.heads; ++head) {
      finish_tile(tile, first, std::min(first + tile_rows_, count_), head, states);
    }
  }
}

void RowBlock::finish_tile(TileState tile, std::int64_t first, std::int64_t last, std::int64_t head,
                           const RowStates& states) const noexcept {
  const float* sums = part_of(call_, worker_, call_.plan.final_sum) + head * count_;
  if (tile == TileState::finished && call_.out.type != NumberType::float32) narrow_tile(first, last, head, states);
  for (std::int64_t r = first; r < last; ++r) {
    const RowPlace place = place_of(call_, range_.key_value_head + head, range_.first + r);
    const std::int64_t state = head * states.head_stride + r;
    if (tile == TileState::empty || tile == TileState::sink) {
      finish_empty_row(call_, range_.sample, place);
    } else if (tile == TileState::kept) {
      finish_row(call_, range_.sample, place, states.row(call_, state));
    } else {
      record_row(call_, range_.sample, place, states.maximum[state], sums[r]);
    }
  }
}

// Finished rows from their states to where they belong, those at once that one stride leads through.
void RowBlock::narrow_tile(std::int64_t first, std::int64_t last, std::int64_t head,
                           const RowStates& states) const noexcept {
  const std::int64_t group = call_.sizes.group;
  const std::int64_t stride = call_.plan.padded_value_dim;
  for (std::int64_t r = first; r < last;) {
    const RowPlace place = place_of(call_, range_.key_value_head + head, range_.first + r);
    const std::int64_t rows = group == 1 ? last - r : std::min(group - place.head % group, last - r);
    call_.kernels.narrow_rows(
        states.out + (head * states.head_stride + r) * stride, stride, rows, call_.sizes.value_dim, call_.out.type,
        row_at(call_.out, range_.sample, place.query, place.head), call_.out.stride(group == 1 ? 1 : 2));
    r += rows;
  }
}

void RowBlock::begin_with_sinks(const RowStates& states) noexcept {
  for (std::int64_t r = 0; r < count_; r += tile_rows_) tiles_[r / tile_rows_] = TileState::sink;
  std::int64_t of_head = -1;
  SinkState sink;
  for_each_row([&](std::int64_t head, std::int64_t r, const RowPlace& place) {
    if (place.head != of_head) sink = sink_state(call_, place.head);
    of_head = place.head;
    states.maximum[head * states.head_stride + r] = sink.maximum;
  });
}

void RowBlock::run(const RowStates& states) noexcept {
  if (!call_.options.sinks.empty() && first_key_ < last_key_) begin_with_sinks(states);
  if (first_key_ < last_key_) attend(first_key_, last_key_, states, true);
  if (runtime::is_cancelled()) return;  // nobody looks at the output: its pages are left alone
  finish(states);
}

void RowBlock::run_partially(std::int64_t first_key, std::int64_t last_key, const RowStates& states) noexcept {
  attend(first_key, last_key, states, false);
}

}  // namespace headlight::ops
