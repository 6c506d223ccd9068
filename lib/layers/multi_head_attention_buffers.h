// The buffers of a multi-head attention layer during a call.
#pragma once

#include <array>
#include <cassert>

#include "headlight/layers/multi_head_attention.h"
#include "layers/heads.h"
#include "layers/rows.h"
#include "layers/sizes.h"
#include "runtime/parallel.h"

namespace headlight {

// What a call works in: the projected inputs, as many buffers as there are products, and the heads' outputs. In scratch
// memory, or in a saved state.
struct MultiHeadAttention::Buffers {
  struct Buffer {
    runtime::ScratchPart<float> part{};
    std::int64_t columns = 0;
    std::int64_t length = 0;
    NumberType type = NumberType::float32;
  };

  // Of what projections and attention write.
  struct Types {
    NumberType projected = NumberType::float32;
    NumberType heads = NumberType::float32;
  };
  // Those of training with such activations. Other merges compute with the heads.
  [[nodiscard]] static Types in_training(const MultiHeadAttention& layer, NumberType activations) noexcept {
    const bool concatenates = layer.options_.merge == Merge::concatenate;
    return {activations, concatenates ? activations : NumberType::float32};
  }

  Buffers(const MultiHeadAttention& layer, const MultiHeadAttentionShape& shape) : Buffers(layer, shape, Types()) {}
  Buffers(const MultiHeadAttention& layer, const MultiHeadAttentionShape& shape, const Types& given)
      : batch(shape.batch),
        width(layer.options_.width),
        key_value(layer.key_value_columns()),
        inputs(shape.inputs),
        types(given) {
    for (const std::int64_t length : {shape.query_length, shape.key_length}) {
      static_cast<void>(layers::row_count("MultiHeadAttention", batch, length));
    }
    switch (shape.inputs) {
      case SharedInputs::all:
        projected[kAll] = add(shape.query_length, width + 2 * key_value, types.projected);
        break;
      case SharedInputs::key_and_value:
        projected[kQuery] = add(shape.query_length, width, types.projected);
        projected[kKeyValue] = add(shape.key_length, 2 * key_value, types.projected);
        break;
      case SharedInputs::none:
        projected[kQuery] = add(shape.query_length, width, types.projected);
        projected[kKey] = add(shape.key_length, key_value, types.projected);
        projected[kValue] = add(shape.key_length, key_value, types.projected);
        break;
    }
    heads = add(shape.query_length, width, types.heads);
    if (layer.options_.merge == Merge::concatenate) return;
    const std::int64_t columns = layer.mixing_columns();
    // Without a projection all queries share one row.
    mixing = columns > 0 ? add(shape.query_length, columns) : add(1, layer.options_.heads);
    mixed = add(shape.query_length, layer.merged_columns());
  }

  Buffer add(std::int64_t length, std::int64_t columns, NumberType type = NumberType::float32) noexcept {
    return {layout.add<float>(batch, length, layers::row_floats(columns, type)), columns, length, type};
  }

  [[nodiscard]] MutableTypedView<3> typed(std::byte* base, const Buffer& buffer) const noexcept {
    return layers::spaced_rows(buffer.type, buffer.part.in(base), {batch, buffer.length, buffer.columns});
  }
  // Of float32.
  [[nodiscard]] View<float, 3> view(std::byte* base, const Buffer& buffer) const noexcept {
    return layers::floats_of(typed(base, buffer));
  }

  [[nodiscard]] View<float, 3> view(std::byte* base, Group group) const noexcept {
    return view(base, projected[group]);
  }

  // Query, key and value as they come out of the projections, wherever they lie, of float32 or BFloat16.
  template <class T>
  struct Projected {
    View<T, 3> query;
    View<T, 3> key;
    View<T, 3> value;
  };
  template <class T = float>
  [[nodiscard]] Projected<T> split(std::byte* base) const noexcept {
    const auto columns = [&](Group group, std::int64_t begin, std::int64_t count) {
      const MutableTypedView<3> all = typed(base, projected[group]);
      assert(all.type == number_type_of<T>);
      T* const first = all.data == nullptr ? nullptr : static_cast<T*>(all.data) + begin;  // none of an empty batch
      return View<T, 3>(first, {all.extent(0), all.extent(1), count}, all.strides);
    };
    switch (inputs) {
      case SharedInputs::all:
        return {columns(kAll, 0, width), columns(kAll, width, key_value), columns(kAll, width + key_value, key_value)};
      case SharedInputs::key_and_value:
        return {columns(kQuery, 0, width), columns(kKeyValue, 0, key_value), columns(kKeyValue, key_value, key_value)};
      default:
        return {columns(kQuery, 0, width), columns(kKey, 0, key_value), columns(kValue, 0, key_value)};
    }
  }

  std::int64_t batch;
  std::int64_t width;
  std::int64_t key_value;
  SharedInputs inputs;
  Types types;
  runtime::ScratchLayout layout;
  std::array<Buffer, kGroups> projected{};
  Buffer heads;
  Buffer mixing;  // weights or gates, and the heads after them
  Buffer mixed;
};

}  // namespace headlight
