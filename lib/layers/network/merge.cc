// Heads weighted or gated, between attention and the last product.
#include <algorithm>

#include "headlight/gemm.h"
#include "headlight/normalization.h"
#include "layers/network/operations.h"
#include "layers/rows.h"
#include "ops/rows/head_merge.h"
#include "ops/rows/scale.h"
#include "runtime/parallel.h"

namespace headlight::layers {

namespace {

std::size_t bytes_of_weights(std::int64_t rows, std::int64_t heads) noexcept {
  runtime::ScratchLayout layout;
  layout.add<float>(rows, row_distance(heads));
  return layout.bytes();
}

}  // namespace

View<float, 2> MergeOperation::weights(const GraphCall& call, const RowRange& rows, std::byte* memory) const {
  const View<float, 2> made(reinterpret_cast<float*>(memory), {input(1) ? rows.count : 1, heads_},
                            {row_distance(heads_), 1});
  if (input(1)) {
    softmax(call.engine(), call.floats(input(1), rows), made);
  } else if (logits_ != nullptr) {
    softmax(call.engine(), View<const float, 2>(logits_->values.data(), {1, heads_}), made);
  } else {
    std::fill_n(made.data, heads_, 1.0f / static_cast<float>(heads_));
  }
  return made;
}

void MergeOperation::forward(const GraphCall& call, const RowRange& rows) const {
  const View<float, 2> heads = call.floats(input(0), rows), y = call.floats(output(), rows);
  const View<float, 2> scaled = rows_of_samples(call.heads(block_).scaled_outputs, rows.first, rows.count);
  if (gates_) {
    ops::gate_heads(call.engine(), heads, call.floats(input(1), rows), heads_, y);
    if (scaled) ops::scale_rows(call.engine(), y, 1.0f, {}, scaled);
    return;
  }
  const runtime::Scratch memory(call.engine(), bytes_of_weights(rows.count, heads_), call.name());
  const View<float, 2> by = weights(call, rows, memory.data());
  ops::weigh_heads(call.engine(), heads, by, y);
  if (scaled) ops::scale_heads(call.engine(), heads, by, scaled);
}

void MergeOperation::backward(const GraphCall& call, const RowRange& rows) {
  const View<float, 2> heads = call.floats(input(0), rows), heads_gradient = call.gradient(input(0), rows);
  const View<float, 2> y_gradient = call.gradient(output(), rows);
  View<float, 2> by_gradient = input(1) ? call.gradient(input(1), rows) : View<float, 2>();
  if (gates_) {
    return ops::gate_heads_backward(call.engine(), heads, call.floats(input(1), rows), heads_, y_gradient,
                                    heads_gradient, by_gradient);
  }
  const std::size_t bytes = bytes_of_weights(rows.count, heads_);
  const runtime::Scratch memory(call.engine(), 2 * bytes, call.name());
  const View<float, 2> by = weights(call, rows, memory.data());
  if (logits_ != nullptr) {
    // Each row has its own part in the gradient of logits that all share.
    by_gradient = {reinterpret_cast<float*>(memory.data() + bytes), {rows.count, heads_}, by.strides};
  }
  ops::weigh_heads_backward(call.engine(), heads, by, y_gradient, heads_gradient, by_gradient);
  if (!by_gradient) return;
  const std::int64_t between_rows = logits_ != nullptr ? 0 : by.stride(0);
  softmax_backward(call.engine(), View<const float, 2>(by.data, by_gradient.shape, {between_rows, 1}), by_gradient,
                   by_gradient);
  if (logits_ != nullptr) bias_backward(call.engine(), by_gradient, logits_->all_of_gradient());
}

ParameterGradients MergeOperation::gradients() noexcept {
  return {{logits_ == nullptr ? std::span<float>() : logits_->all_of_gradient()}};
}

Operation::Blocks MergeOperation::workspace(const Engine&, const BatchShape& shape) const {
  return {gates_ ? 0 : bytes_of_weights(shape.rows(), heads_)};
}

}  // namespace headlight::layers
