// The buffers of a multi-head attention layer during a call.
#pragma once

#include <array>

#include "headlight/layers/multi_head_attention.h"
#include "layers/rows.h"
#include "layers/sizes.h"
#include "runtime/parallel.h"

namespace headlight {

namespace layers {

// [B, L, heads · D] as [B, L, heads, D].
template <class T>
View<T, 4> split_heads(const View<T, 3>& x, std::int64_t heads) noexcept {
  const std::int64_t head_dim = x.extent(2) / heads;
  return {x.data, {x.extent(0), x.extent(1), heads, head_dim}, {x.stride(0), x.stride(1), head_dim, 1}};
}

}  // namespace layers

// What a call works in: the projected inputs, as many buffers as there are products, and the heads' outputs. In scratch
// memory, or in a saved state.
struct MultiHeadAttention::Buffers {
  struct Buffer {
    runtime::ScratchPart<float> part{};
    std::int64_t columns = 0;
    std::int64_t length = 0;
  };

  Buffers(const MultiHeadAttention& layer, const MultiHeadAttentionShape& shape)
      : batch(shape.batch), width(layer.options_.width), key_value(layer.key_value_columns()), inputs(shape.inputs) {
    for (const std::int64_t length : {shape.query_length, shape.key_length}) {
      static_cast<void>(layers::row_count("MultiHeadAttention", batch, length));
    }
    switch (shape.inputs) {
      case SharedInputs::all:
        projected[kAll] = add(shape.query_length, width + 2 * key_value);
        break;
      case SharedInputs::key_and_value:
        projected[kQuery] = add(shape.query_length, width);
        projected[kKeyValue] = add(shape.key_length, 2 * key_value);
        break;
      case SharedInputs::none:
        projected[kQuery] = add(shape.query_length, width);
        projected[kKey] = add(shape.key_length, key_value);
        projected[kValue] = add(shape.key_length, key_value);
        break;
    }
    heads = add(shape.query_length, width);
    if (layer.options_.merge == Merge::concatenate) return;
    const std::int64_t columns = layer.mixing_columns();
    // Without a projection all queries share one row.
    mixing = columns > 0 ? add(shape.query_length, columns) : add(1, layer.options_.heads);
    mixed = add(shape.query_length, layer.merged_columns());
  }

  Buffer add(std::int64_t length, std::int64_t columns) noexcept {
    return {layout.add<float>(batch, length, layers::row_distance(columns)), columns, length};
  }

  [[nodiscard]] View<float, 3> view(std::byte* base, const Buffer& buffer) const noexcept {
    return layers::spaced_rows(buffer.part.in(base), {batch, buffer.length, buffer.columns});
  }

  [[nodiscard]] View<float, 3> view(std::byte* base, Group group) const noexcept {
    return view(base, projected[group]);
  }

  // Query, key and value as they come out of the projections, wherever they lie.
  struct Projected {
    View<float, 3> query;
    View<float, 3> key;
    View<float, 3> value;
  };
  [[nodiscard]] Projected split(std::byte* base) const noexcept {
    const auto columns = [&](Group group, std::int64_t begin, std::int64_t count) {
      const View<float, 3> all = view(base, group);
      float* const first = all.data == nullptr ? nullptr : all.data + begin;  // none of an empty batch
      return View<float, 3>(first, {all.extent(0), all.extent(1), count}, all.strides);
    };
    switch (inputs) {
      case SharedInputs::all:
        return {columns(kAll, 0, width), columns(kAll, width, key_value), columns(kAll, width + key_value, key_value)};
      case SharedInputs::key_and_value:
        return {view(base, kQuery), columns(kKeyValue, 0, key_value), columns(kKeyValue, key_value, key_value)};
      default:
        return {view(base, kQuery), view(base, kKey), view(base, kValue)};
    }
  }

  std::int64_t batch;
  std::int64_t width;
  std::int64_t key_value;
  SharedInputs inputs;
  runtime::ScratchLayout layout;
  std::array<Buffer, kGroups> projected{};
  Buffer heads;
  Buffer mixing;  // weights or gates, and the heads after them
  Buffer mixed;
};

}  // namespace headlight
