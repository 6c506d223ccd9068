#include "ops/attention/typed_short.h"

#include <algorithm>

#include "ops/attention/scale.h"
#include "ops/rows/typed.h"

namespace headlight::ops {
namespace {

// Query, key, value and out of a head, each from a cache line on.
constexpr std::int64_t kNearFloats = 8 << 10;
constexpr std::int64_t kFloatsOfLine = 16;

float* take(float*& room, std::int64_t floats) noexcept {
  float* const taken = room;
  room += round_up(floats, kFloatsOfLine);
  return taken;
}

std::int64_t words_of_row(const kernels::AttentionKernels& kernels, std::int64_t dim) noexcept {
  return kernels::filled_up(dim / kernels.numbers_of_word, kernels.words_at_once);
}

// Tile registers take keys and values where they lie, and queries that are words of memory.
bool reads_in_place(const kernels::AttentionKernels& kernels) noexcept { return kernels.keys_at_once > 1; }
bool are_words(const kernels::Operand& rows) noexcept {
  return rows.stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(rows.data) % sizeof(float) == 0;
}

// The rows of an operand as the kernels take them: where they lie if they are floats, else widened, or as words, at
// `room`, which goes on behind them.
kernels::Operand rows_of(const kernels::AttentionKernels& kernels, const kernels::Operand& rows, std::int64_t count,
                         std::int64_t dim, float*& room) noexcept {
  if (rows.type == NumberType::float32) return rows;
  const std::int64_t words = words_of_row(kernels, dim);
  float* const to = take(room, count * words);
  kernels.copy_rows(rows, 1.0f, count, dim, to);
  return {.stride = words, .data = to};
}

// Of values in panels, where two of them share a word.
struct ValuePanels {
  std::int64_t words;
  std::int64_t width;
  std::int64_t columns;
};
ValuePanels value_panels(const kernels::AttentionKernels& kernels, std::int64_t count, std::int64_t dim) noexcept {
  const std::int64_t padded_dim = round_up(dim, std::int64_t{kernels.lanes});
  const std::int64_t width = std::min<std::int64_t>(kernels.value_panel, padded_dim);
  return {divide_up(count, std::int64_t{kernels.numbers_of_word}), width, round_up(dim, width)};
}

kernels::Operand values_of(const kernels::AttentionKernels& kernels, const kernels::Operand& rows, std::int64_t count,
                           std::int64_t dim, float*& room) noexcept {
  if (kernels.numbers_of_word == 1) return rows_of(kernels, rows, count, dim, room);
  const ValuePanels panels = value_panels(kernels, count, dim);
  float* const to = take(room, panels.words * panels.columns);
  kernels.pack_values(rows, count, dim, to, panels.words * panels.width);
  return {.layout = kernels::OperandLayout::panels, .data = to};
}

}  // namespace

bool stays_near(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  const std::int64_t rows = std::min<std::int64_t>(sizes.query_length, kernels.short_rows) +
                            std::min<std::int64_t>(sizes.key_length, kernels.short_keys);
  return sizes.value_dim <= kNearFloats &&
         rows * (sizes.head_dim + round_up(sizes.value_dim, std::int64_t{kernels.lanes})) <= kNearFloats;
}

std::int64_t typed_short_floats(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  const std::int64_t rows = std::min<std::int64_t>(sizes.query_length, kernels.short_rows);
  const std::int64_t keys = std::min<std::int64_t>(sizes.key_length, kernels.short_keys);
  const std::int64_t words = words_of_row(kernels, sizes.head_dim);
  const ValuePanels panels = value_panels(kernels, keys, sizes.value_dim);
  const auto lines = [](std::int64_t floats) { return round_up(floats, kFloatsOfLine); };
  if (reads_in_place(kernels)) {
    return lines(short_columns(kernels, sizes)) + lines(rows * words) + lines(rows * sizes.value_dim);
  }
  return lines(short_columns(kernels, sizes)) + lines(rows * words) + lines(keys * words) +
         lines(panels.words * panels.columns) + lines(rows * sizes.value_dim);
}

void TypedShortAttention::attend(const ShortRows& group, std::int64_t head, float* room) const noexcept {
  float maximum[kMaxShortRows];
  float sum[kMaxShortRows];
  float* const columns = take(room, short_columns(kernels, sizes));
  const TypedView<4>& query = operands.query;
  const MutableTypedView<4>& out = operands.out;
  const std::int64_t key_value_head = sizes.group > 1 ? head / sizes.group : head;
  kernels::Operand rows = operand_at(query, group.sample, group.first, head);
  rows.stride = query.stride(1);
  kernels::KeyValueBlock block = keys.block(group.sample, key_value_head, group.first_key, group.keys);
  if (!reads_in_place(kernels)) {
    rows = rows_of(kernels, rows, group.rows, sizes.head_dim, room);
    block.key = rows_of(kernels, block.key, group.keys, sizes.head_dim, room);
    block.value = values_of(kernels, block.value, group.keys, sizes.value_dim, room);
  } else if (are_words(rows)) {
    rows.stride /= 2;
  } else {
    rows = rows_of(kernels, rows, group.rows, sizes.head_dim, room);
  }
  void* const to = row_at(out, group.sample, group.first, head);
  const bool narrows = out.type != NumberType::float32;
  float* const result = narrows ? take(room, group.rows * sizes.value_dim) : static_cast<float*>(to);
  kernels.attend_short({.query = {.data = rows.words(),
                                  .stride = rows.stride,
                                  .count = group.rows,
                                  .head_dim = sizes.head_dim / kernels.numbers_of_word},
                        .keys = block,
                        .seen = {group.begin, group.end, false},
                        .all_seen = group.all_seen,
                        .exponent_scale = exponent_scale,
                        .out = result,
                        .out_stride = narrows ? sizes.value_dim : out.stride(1),
                        .columns = columns,
                        .maximum = maximum,
                        .sum = sum});
  if (narrows) kernels.narrow_rows(result, sizes.value_dim, group.rows, sizes.value_dim, out.type, to, out.stride(1));
  if (!options.log_sum_exp) return;
  for (std::int64_t r = 0; r < group.rows; ++r) {
    options.log_sum_exp(group.sample, head, group.first + r) = log_sum_exp_of(maximum[r], sum[r]);
  }
}

}  // namespace headlight::ops
