// Products with weights, what joins their results, and dropout.
#include "headlight/activation.h"
#include "headlight/gate.h"
#include "headlight/gemm.h"
#include "headlight/normalization.h"
#include "layers/network/operations.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/rows.h"
#include "runtime/parallel.h"

namespace headlight::layers {

std::span<float> ProductOperation::bias_gradient() const noexcept {
  return bias_ == nullptr ? std::span<float>() : some_of(bias_->gradient, weight_rows());
}

void ProductOperation::forward(const GraphCall& call, const RowRange& rows) const {
  const Dropout dropout = call.dropout(epilogue_.dropout);
  const bool drops = dropout.probability > 0;
  const View<float, 2> residual = call.floats(input(1), rows);
  const MutableTypedView<2> y = call.at(output(), rows);
  multiply_in_training(call.engine(), type(call), call.at(input(0), rows), weight_.matrix, weight_rows(), y,
                       {.bias = bias_ == nullptr ? std::span<const float>() : some_of(bias_->values, weight_rows()),
                        .activation = call.is_training() ? Activation::none : epilogue_.activation,
                        .residual = drops ? View<float, 2>() : residual});
  if (drops) call.drop(dropout, y, residual, y, rows);
}

View<float, 2> ProductOperation::product_gradient(const GraphCall& call, const Dropout& dropout, const RowRange& rows,
                                                  std::byte* memory) const {
  const View<float, 2> y_gradient = call.gradient(output(), rows);
  if (dropout.probability == 0) return y_gradient;
  View<float, 2> made = y_gradient;
  // The gradient of y may be that of the residual, too.
  if (input(1)) made = {reinterpret_cast<float*>(memory), y_gradient.shape, {row_distance(output().columns), 1}};
  call.drop(dropout, y_gradient, {}, made, rows);
  return made;
}

void ProductOperation::backward(const GraphCall& call, const RowRange& rows) {
  const Dropout dropout = call.dropout(epilogue_.dropout);
  runtime::ScratchLayout layout;
  if (dropout.probability > 0 && input(1)) layout.add<float>(rows.count, row_distance(output().columns));
  const runtime::Scratch memory(call.engine(), layout.bytes(), call.name());
  const MutableTypedView<2> x_gradient = call.typed_gradient(input(0), rows);
  multiply_backward(call.engine(), type(call),
                    {.x = call.at(input(0), rows),
                     .y_gradient = product_gradient(call, dropout, rows, memory.data()),
                     .x_gradient = x_gradient,
                     .residual = adds(0) ? View<const float, 2>(floats_of(x_gradient)) : View<const float, 2>(),
                     .bias_gradient = bias_gradient()},
                    weight_.matrix, weight_rows());
  if (input(1)) pass_on(call, 1, rows);
}

ParameterGradients ProductOperation::gradients() noexcept {
  return {{values_of(rows_of(weight_.matrix.gradient(), weight_rows())), bias_gradient()}};
}

Operation::Blocks ProductOperation::workspace(const Engine& engine, const BatchShape& shape) const {
  return {product_bytes_up_to(engine, shape.rows(), weight_.matrix, weight_rows())};
}

void ProductOperation::pack_weights(Engine& engine) const {
  static_cast<void>(weight_.matrix.packed(engine, weight_rows()));
}

void DropoutOperation::forward(const GraphCall& call, const RowRange& rows) const {
  const Dropout dropout = call.dropout(dropout_);
  const MutableTypedView<2> x = call.at(input(0), rows), y = call.at(output(), rows);
  if (dropout.probability > 0 || x.data != y.data) call.drop(dropout, x, {}, y, rows);
}

void DropoutOperation::backward(const GraphCall& call, const RowRange& rows) {
  call.drop(call.dropout(dropout_), call.gradient(output(), rows), {}, call.gradient(input(0), rows), rows);
}

void ActivationOperation::forward(const GraphCall& call, const RowRange& rows) const {
  if (!call.is_training()) return;
  const MutableTypedView<2> y = call.at(output(), rows);
  activate(call.engine(), activation_, call.at(input(0), rows), y);
  const Dropout dropout = call.dropout(dropout_);
  if (dropout.probability > 0) call.drop(dropout, y, {}, y, rows);
}

void ActivationOperation::backward(const GraphCall& call, const RowRange& rows) {
  const View<float, 2> y_gradient = call.gradient(output(), rows);
  const Dropout dropout = call.dropout(dropout_);
  if (dropout.probability > 0) call.drop(dropout, y_gradient, {}, y_gradient, rows);
  activate_backward(call.engine(), activation_, call.at(input(0), rows), y_gradient, call.gradient(input(0), rows));
}

void GateOperation::forward(const GraphCall& call, const RowRange& rows) const {
  gate(call.engine(), activation_, call.at(input(0), rows), call.at(input(1), rows), call.at(output(), rows));
  const Dropout dropout = call.dropout(dropout_);
  if (dropout.probability == 0) return;
  const MutableTypedView<2> y = call.at(output(), rows);
  call.drop(dropout, y, {}, y, rows);
}

void GateOperation::backward(const GraphCall& call, const RowRange& rows) {
  const View<float, 2> y_gradient = call.gradient(output(), rows);
  const Dropout dropout = call.dropout(dropout_);
  if (dropout.probability > 0) call.drop(dropout, y_gradient, {}, y_gradient, rows);
  gate_backward(call.engine(), activation_, call.floats(input(0), rows), call.floats(input(1), rows), y_gradient,
                call.gradient(input(0), rows), call.gradient(input(1), rows));
}

Operation::Blocks GateOperation::workspace(const Engine& engine, const BatchShape&) const {
  return {rows_workspace_bytes(engine, output().columns)};
}

}  // namespace headlight::layers
