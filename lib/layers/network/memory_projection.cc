// Keys and values of what a call may look at beside its own rows.
#include <array>

#include "layers/handed_on.h"
#include "layers/network/operations.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/row_visitor.h"
#include "layers/rows.h"
#include "runtime/parallel.h"

namespace headlight::layers {

NumberType MemoryProjection::type(const Engine& engine, std::int64_t head_dim) const noexcept {
  // An odd number in a row is in no pair.
  return head_dim % 2 == 0 ? handed_to_attention(engine, product_type(*weight_)) : NumberType::float32;
}

std::size_t MemoryProjection::bytes(const BatchShape& shape, NumberType type) const noexcept {
  runtime::ScratchLayout layout;
  layout.add<float>(shape.batch, shape.memory_length, row_floats(rows_.count, type));
  return layout.bytes();
}

MutableTypedView<3> MemoryProjection::placed(const GraphCall& call, NumberType type, std::byte* memory) const noexcept {
  return spaced_rows(type, memory, {call.shape().batch, call.shape().memory_length, rows_.count});
}

void MemoryProjection::forward(const GraphCall& call, const MutableTypedView<3>& key_value) const {
  const std::span<const float> bias = bias_ == nullptr ? std::span<const float>() : some_of(bias_->values, rows_);
  for_each_matrix(
      call.shape().batch,
      [&](const View<const float, 2>& from, const MutableTypedView<2>& to) {
        multiply_in_training(call.engine(), call.activations(), from, *weight_, rows_, to, {.bias = bias});
      },
      call.given().memory, key_value);
}

void MemoryProjection::backward(const GraphCall& call, const View<float, 3>& key_value_gradient) const {
  const std::span<float> weight = values_of(rows_of(weight_->gradient(), rows_));
  const std::span<float> bias = bias_ == nullptr ? std::span<float>() : some_of(bias_->gradient, rows_);
  const View<float, 3>& gradient = call.given().memory_gradient;
  rows_of_memory(call.attention())
      .sum(
          call.engine(), std::array{weight, bias}, call.shape().batch,
          [&](std::int64_t, View<const float, 2> in, View<const float, 2> from, View<float, 2> to) {
            multiply_backward(call.engine(), call.activations(), {in, from, to, to, bias}, *weight_, rows_);
          },
          call.given().memory, View<const float, 3>(key_value_gradient), gradient);
}

std::size_t MemoryProjection::workspace_bytes(const Engine& engine, const BatchShape& shape) const {
  return product_bytes(engine, shape.batch * shape.memory_length, *weight_, rows_);
}

}  // namespace headlight::layers
