// Products with weights, what joins their results, and dropout.
#include "headlight/activation.h"
#include "headlight/gate.h"
#include "headlight/gemm.h"
#include "headlight/normalization.h"
#include "layers/layer_names.h"
#include "layers/network/operations.h"
#include "layers/product.h"
#include "layers/rows.h"
#include "ops/rows/dropout_rows.h"
#include "runtime/parallel.h"

namespace headlight::layers {

void ProductOperation::forward(const GraphCall& call, const RowRange& rows) const {
  const Dropout dropout = call.dropout(epilogue_.dropout);
  const bool drops = dropout.probability > 0;
  const bool keeps = call.is_training() && epilogue_.activation != Activation::none;
  const View<float, 2> residual = call.floats(input(1), rows);
  const MutableTypedView<2> y = call.at(output(), rows);
  const MutableTypedView<2> sum = keeps ? call.at(epilogue_.before, rows) : y;
  multiply(call.engine(), call.at(input(0), rows), weight_.matrix, weight_.matrix.all(), sum,
           {.bias = bias_ == nullptr ? std::span<const float>() : bias_->all(),
            .activation = keeps ? Activation::none : epilogue_.activation,
            .residual = drops ? View<float, 2>() : residual});
  if (keeps) activate(call.engine(), epilogue_.activation, sum, y);
  if (drops) ops::dropout_rows(call.engine(), y, y, dropout, residual, rows.first);
}

View<float, 2> ProductOperation::product_gradient(const GraphCall& call, const Dropout& dropout, const RowRange& rows,
                                                  std::byte* memory) const {
  const View<float, 2> y_gradient = call.gradient(output(), rows);
  View<float, 2> made = y_gradient;
  if (dropout.probability > 0) {
    // The gradient of y may be that of the residual, too.
    if (input(1)) made = {reinterpret_cast<float*>(memory), y_gradient.shape, {row_distance(output().columns), 1}};
    ops::dropout_rows(call.engine(), y_gradient, made, dropout, {}, rows.first);
  }
  if (epilogue_.activation != Activation::none) {
    activate_backward(call.engine(), epilogue_.activation, call.floats(epilogue_.before, rows), made, made);
  }
  return made;
}

void ProductOperation::backward(const GraphCall& call, const RowRange& rows) {
  const Dropout dropout = call.dropout(epilogue_.dropout);
  runtime::ScratchLayout layout;
  if (dropout.probability > 0 && input(1)) layout.add<float>(rows.count, row_distance(output().columns));
  const runtime::Scratch memory(call.engine(), layout.bytes(), kNetworkName);
  const View<float, 2> x_gradient = call.gradient(input(0), rows);
  multiply_backward(call.engine(), NumberType::float32,
                    {.x = call.floats(input(0), rows),
                     .y_gradient = product_gradient(call, dropout, rows, memory.data()),
                     .x_gradient = x_gradient,
                     .residual = adds(0) ? View<const float, 2>(x_gradient) : View<const float, 2>(),
                     .bias_gradient = bias_ == nullptr ? std::span<float>() : bias_->all_of_gradient()},
                    weight_.matrix, weight_.matrix.all());
  if (input(1)) pass_on(call, 1, rows);
}

std::size_t ProductOperation::workspace_bytes(const Engine& engine, std::int64_t rows) const {
  return product_bytes(engine, rows, weight_.matrix, weight_.matrix.all());
}

void ProductOperation::reserve(Engine& engine, std::int64_t rows) const {
  reserve_product(engine, rows, weight_.matrix, weight_.matrix.all());
}

void DropoutOperation::forward(const GraphCall& call, const RowRange& rows) const {
  const Dropout dropout = call.dropout(dropout_);
  const MutableTypedView<2> x = call.at(input(0), rows), y = call.at(output(), rows);
  if (dropout.probability > 0 || x.data != y.data) ops::dropout_rows(call.engine(), x, y, dropout, {}, rows.first);
}

void DropoutOperation::backward(const GraphCall& call, const RowRange& rows) {
  ops::dropout_rows(call.engine(), call.gradient(output(), rows), call.gradient(input(0), rows), call.dropout(dropout_),
                    {}, rows.first);
}

void GateOperation::forward(const GraphCall& call, const RowRange& rows) const {
  gate(call.engine(), activation_, call.at(input(0), rows), call.at(input(1), rows), call.at(output(), rows));
  const Dropout dropout = call.dropout(dropout_);
  if (dropout.probability == 0) return;
  const MutableTypedView<2> y = call.at(output(), rows);
  ops::dropout_rows(call.engine(), y, y, dropout, {}, rows.first);
}

void GateOperation::backward(const GraphCall& call, const RowRange& rows) {
  const View<float, 2> y_gradient = call.gradient(output(), rows);
  const Dropout dropout = call.dropout(dropout_);
  if (dropout.probability > 0) ops::dropout_rows(call.engine(), y_gradient, y_gradient, dropout, {}, rows.first);
  gate_backward(call.engine(), activation_, call.floats(input(0), rows), call.floats(input(1), rows), y_gradient,
                call.gradient(input(0), rows), call.gradient(input(1), rows));
}

std::size_t GateOperation::workspace_bytes(const Engine& engine, std::int64_t) const {
  return rows_workspace_bytes(engine, output().columns);
}

void GateOperation::reserve(Engine& engine, std::int64_t) const { reserve_rows(engine, output().columns); }

}  // namespace headlight::layers
