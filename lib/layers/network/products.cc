// Products with weights, and what joins their results.
#include "headlight/activation.h"
#include "headlight/gate.h"
#include "headlight/gemm.h"
#include "headlight/normalization.h"
#include "layers/network/operations.h"
#include "layers/product.h"

namespace headlight::layers {

void ProductOperation::forward(const GraphCall& call, const RowRange& rows) const {
  const bool keeps = call.is_training() && activation_ != Activation::none;
  const MutableTypedView<2> y = call.at(output(), rows);
  const MutableTypedView<2> sum = keeps ? call.at(before_, rows) : y;
  multiply(call.engine(), call.at(input(0), rows), weight_.matrix, weight_.matrix.all(), sum,
           {.bias = bias_ == nullptr ? std::span<const float>() : bias_->all(),
            .activation = keeps ? Activation::none : activation_,
            .residual = call.floats(input(1), rows)});
  if (keeps) activate(call.engine(), activation_, sum, y);
}

void ProductOperation::backward(const GraphCall& call) {
  const View<float, 2> y_gradient = call.gradient(output());
  if (activation_ != Activation::none) {
    activate_backward(call.engine(), activation_, call.kept(before_), y_gradient, y_gradient);
  }
  const View<float, 2> x_gradient = call.gradient(input(0));
  multiply_backward(call.engine(), NumberType::float32,
                    {.x = call.kept(input(0)),
                     .y_gradient = y_gradient,
                     .x_gradient = x_gradient,
                     .residual = adds(0) ? View<const float, 2>(x_gradient) : View<const float, 2>(),
                     .bias_gradient = bias_ == nullptr ? std::span<float>() : bias_->all_of_gradient()},
                    weight_.matrix, weight_.matrix.all());
  if (input(1)) pass_on(call, 1);
}

std::size_t ProductOperation::workspace_bytes(const Engine& engine, std::int64_t rows) const {
  return product_bytes(engine, rows, weight_.matrix, weight_.matrix.all());
}

void ProductOperation::reserve(Engine& engine, std::int64_t rows) const {
  reserve_product(engine, rows, weight_.matrix, weight_.matrix.all());
}

void GateOperation::forward(const GraphCall& call, const RowRange& rows) const {
  gate(call.engine(), activation_, call.at(input(0), rows), call.at(input(1), rows), call.at(output(), rows));
}

void GateOperation::backward(const GraphCall& call) {
  gate_backward(call.engine(), activation_, call.kept(input(0)), call.kept(input(1)), call.gradient(output()),
                call.gradient(input(0)), call.gradient(input(1)));
}

std::size_t GateOperation::workspace_bytes(const Engine& engine, std::int64_t) const {
  return rows_workspace_bytes(engine, output().columns);
}

void GateOperation::reserve(Engine& engine, std::int64_t) const { reserve_rows(engine, output().columns); }

}  // namespace headlight::layers
