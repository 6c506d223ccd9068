// Normalisations, and sums with a factor.
#include <cassert>
#include <span>

#include "headlight/normalization.h"
#include "layers/network/operations.h"
#include "ops/rows/scale.h"

namespace headlight::layers {

void normalize_rows(Engine& engine, const NormSpec& spec, const VectorParameter* weight, const VectorParameter* bias,
                    const TypedView<2>& x, const TypedView<2>& added, const MutableTypedView<2>& y) {
  if (spec.kind == NormKind::rms) {
    rms_norm(
        engine, x, y,
        {.weight = weight->all(), .one_plus_weight = spec.one_plus_weight, .epsilon = spec.epsilon, .added = added});
  } else {
    assert(!added);
    const std::span<const float> biases = bias == nullptr ? std::span<const float>() : bias->all();
    layer_norm(engine, x, y, {.weight = weight->all(), .bias = biases, .epsilon = spec.epsilon});
  }
}

void normalize_rows_backward(Engine& engine, const NormSpec& spec, VectorParameter* weight, VectorParameter* bias,
                             View<const float, 2> x, View<const float, 2> y_gradient, View<float, 2> x_gradient,
                             View<const float, 2> residual) {
  if (spec.kind == NormKind::rms) {
    rms_norm_backward(engine, x, y_gradient,
                      {.x = x_gradient, .residual = residual, .weight = weight->all_of_gradient()},
                      {.weight = weight->all(), .one_plus_weight = spec.one_plus_weight, .epsilon = spec.epsilon});
  } else {
    layer_norm_backward(engine, x, y_gradient,
                        {.x = x_gradient,
                         .residual = residual,
                         .weight = weight->all_of_gradient(),
                         .bias = bias == nullptr ? std::span<float>() : bias->all_of_gradient()},
                        {.weight = weight->all(), .epsilon = spec.epsilon});
  }
}

void NormOperation::forward(const GraphCall& call, const RowRange& rows) const {
  normalize_rows(call.engine(), spec_, weight_, bias_, call.at(input(0), rows), call.at(input(1), rows),
                 call.at(output(), rows));
}

void NormOperation::backward(const GraphCall& call, const RowRange& rows) {
  const View<float, 2> x_gradient = call.gradient(input(0), rows);
  normalize_rows_backward(call.engine(), spec_, weight_, bias_, call.floats(input(0), rows),
                          call.gradient(output(), rows), x_gradient,
                          adds(0) ? View<const float, 2>(x_gradient) : View<const float, 2>());
  if (input(1)) pass_on(call, 1, rows);
}

ParameterGradients NormOperation::gradients() noexcept {
  return {{weight_->all_of_gradient(), bias_ == nullptr ? std::span<float>() : bias_->all_of_gradient()}};
}

void ScaleOperation::forward(const GraphCall& call, const RowRange& rows) const {
  ops::scale_rows(call.engine(), call.floats(input(0), rows), factor_, call.floats(input(1), rows),
                  call.floats(output(), rows));
}

void ScaleOperation::backward(const GraphCall& call, const RowRange& rows) {
  const View<float, 2> x_gradient = call.gradient(input(0), rows);
  ops::scale_rows(call.engine(), call.gradient(output(), rows), factor_,
                  adds(0) ? View<const float, 2>(x_gradient) : View<const float, 2>(), x_gradient);
  if (input(1)) pass_on(call, 1, rows);
}

}  // namespace headlight::layers
