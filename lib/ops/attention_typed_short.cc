#include "ops/attention_typed_short.h"

#include <algorithm>

#include "ops/attention_scale.h"
#include "ops/typed_rows.h"

namespace headlight::ops {
namespace {

// Query, key, value and out of a head.
constexpr std::int64_t kMostFloats = 8 << 10;

// The floats that an operand's rows hold: where they lie, or widened at `room`, which goes on behind them.
kernels::Operand floats_of(const kernels::AttentionKernels& kernels, const kernels::Operand& rows, std::int64_t count,
                           std::int64_t dim, float*& room) noexcept {
  if (rows.type == NumberType::float32) return rows;
  kernels.copy_rows(rows, 1.0f, count, dim, room);
  const kernels::Operand widened{.stride = dim, .data = room};
  room += count * dim;
  return widened;
}

}  // namespace

bool fits_on_stack(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  const std::int64_t rows = std::min<std::int64_t>(sizes.query_length, kernels.short_rows) +
                            std::min<std::int64_t>(sizes.key_length, kernels.short_keys);
  return sizes.value_dim <= kMostFloats && rows * (sizes.head_dim + sizes.value_dim) <= kMostFloats;
}

void TypedShortAttention::attend(const ShortRows& group, std::int64_t head) const noexcept {
  alignas(64) float widened[kMostFloats];
  alignas(64) float columns[kMaxShortHeadDim * kMaxShortRows];
  float maximum[kMaxShortRows];
  float sum[kMaxShortRows];
  float* room = widened;
  const auto& [query, key, value, out] = operands;
  const std::int64_t key_value_head = sizes.group > 1 ? head / sizes.group : head;
  kernels::Operand rows = operand_at(query, group.sample, group.first, head);
  rows.stride = query.stride(1);
  rows = floats_of(kernels, rows, group.rows, sizes.head_dim, room);
  kernels::KeyValueBlock block = keys.block(group.sample, key_value_head, group.first_key, group.keys);
  block.key = floats_of(kernels, block.key, group.keys, sizes.head_dim, room);
  block.value = floats_of(kernels, block.value, group.keys, sizes.value_dim, room);
  void* const to = row_at(out, group.sample, group.first, head);
  const bool narrows = out.type != NumberType::float32;
  float* const result = narrows ? room : static_cast<float*>(to);
  kernels.attend_short(
      {.query = {.data = rows.floats(), .stride = rows.stride, .count = group.rows, .head_dim = sizes.head_dim},
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
