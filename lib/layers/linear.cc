#include "headlight/layers/linear.h"

#include "headlight/normalization.h"
#include "layers/gradient_places.h"
#include "layers/initializer.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/sizes.h"
#include "ops/check.h"

namespace headlight {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias)
    : weight_(layers::matrix_shape("Linear", "weight", layers::at_least(1, "Linear", "out_features", out_features),
                                   layers::at_least(1, "Linear", "in_features", in_features))) {
  if (bias) bias_ = Tensor<float, 1>({out_features});
}

NumberType Linear::product_type() const noexcept { return layers::product_type(weight_); }

void Linear::forward(Engine& engine, View<const float, 2> x, View<float, 2> y, const LinearEpilogue& epilogue) const {
  forward_typed(engine, x, y, epilogue);
}

void Linear::forward_typed(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y,
                           const LinearEpilogue& epilogue) const {
  const std::array<std::int64_t, 2> expected = {-1, in_features()};
  ops::check_shape("Linear", "x", x.shape, expected, "[N, in_features]");
  layers::multiply(
      engine, x, weight_, weight_.all(), y,
      {.bias = layers::values_of(bias_), .activation = epilogue.activation, .residual = epilogue.residual});
}

void Linear::forward_in_training(Engine& engine, NumberType activations, const TypedView<2>& x,
                                 const MutableTypedView<2>& y, const LinearEpilogue& epilogue) const {
  layers::multiply_in_training(
      engine, activations, x, weight_, weight_.all(), y,
      {.bias = layers::values_of(bias_), .activation = epilogue.activation, .residual = epilogue.residual});
}

void Linear::backward(Engine& engine, View<const float, 2> x, View<const float, 2> y_gradient,
                      View<float, 2> x_gradient, View<const float, 2> residual) {
  layers::check_training("Linear", weight_.gradient());
  const std::array<std::int64_t, 2> expected = {-1, in_features()};
  ops::check_shape("Linear", "x", x.shape, expected, "[N, in_features]");
  const std::array<std::int64_t, 2> y_expected = {x.extent(0), out_features()};
  ops::check_shape("Linear", "y_gradient", y_gradient.shape, y_expected, "[N, out_features]");
  if (x_gradient) ops::check_shape("Linear", "x_gradient", x_gradient.shape, x.shape, "the shape of x");
  if (residual) ops::check_shape("Linear", "residual", residual.shape, x.shape, "the shape of x");
  layers::GradientPlace("Linear", "x_gradient", x_gradient)
      .apart_from("x", x)
      .apart_from("y_gradient", y_gradient)
      .same_as_or_apart_from("residual", residual);
  backward_in_training(engine, NumberType::float32, x, y_gradient, x_gradient, residual);
}

void Linear::backward_in_training(Engine& engine, NumberType activations, const TypedView<2>& x,
                                  View<const float, 2> y_gradient, const MutableTypedView<2>& x_gradient,
                                  View<const float, 2> residual) {
  layers::check_training("Linear", weight_.gradient());
  layers::multiply_backward(engine, activations,
                            {x, y_gradient, x_gradient, residual, layers::values_of(bias_gradient_)}, weight_,
                            weight_.all());
}

std::array<std::span<float>, 2> Linear::gradients() noexcept {
  return {layers::values_of(weight_.gradient()), layers::values_of(bias_gradient_)};
}

std::size_t Linear::workspace_bytes(const Engine& engine, std::int64_t rows) const {
  return layers::product_bytes(engine, rows, weight_, weight_.all());
}

void Linear::reserve(Engine& engine, std::int64_t rows) const {
  layers::reserve_product(engine, rows, weight_, weight_.all());
}

void Linear::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list, const Weights*) {
  layers::append(list, prefix + "weight", weight_, weight_.all());
  layers::append(list, prefix + "bias", bias_, bias_gradient_);
}

void Linear::initialize_from(layers::Initializer& initializer) {
  initializer.xavier(layers::values_of(weight_.own()), in_features(), out_features());
  initializer.constant(layers::values_of(bias_), 0.0f);
}

void Linear::set_open(bool open) noexcept { weight_.set_open(open); }

void Linear::make_gradients(bool wanted) {
  weight_.make_gradient(wanted);
  layers::make_gradient(wanted, bias_, bias_gradient_);
}

LayerNorm::LayerNorm(std::int64_t width, float epsilon, bool bias)
    : weight_(layers::vector_shape("LayerNorm", "weight", layers::at_least(1, "LayerNorm", "width", width))),
      epsilon_(epsilon) {
  for (float& weight : weight_) weight = 1.0f;
  if (bias) bias_ = Tensor<float, 1>({width});
}

void LayerNorm::forward(Engine& engine, View<const float, 2> x, View<float, 2> y) const {
  layer_norm(engine, x, y,
             {.weight = layers::values_of(weight_), .bias = layers::values_of(bias_), .epsilon = epsilon_});
}

void LayerNorm::backward(Engine& engine, View<const float, 2> x, View<const float, 2> y_gradient,
                         View<float, 2> x_gradient, View<const float, 2> residual) {
  layers::check_training("LayerNorm", weight_gradient_.view());
  layer_norm_backward(engine, x, y_gradient,
                      {.x = x_gradient,
                       .residual = residual,
                       .weight = layers::values_of(weight_gradient_),
                       .bias = layers::values_of(bias_gradient_)},
                      {.weight = layers::values_of(weight_), .epsilon = epsilon_});
}

void LayerNorm::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                  const Weights*) {
  layers::append(list, prefix + "weight", weight_, weight_gradient_);
  layers::append(list, prefix + "bias", bias_, bias_gradient_);
}

void LayerNorm::initialize_from(layers::Initializer& initializer) {
  initializer.constant(layers::values_of(weight_), 1.0f);
  initializer.constant(layers::values_of(bias_), 0.0f);
}

void LayerNorm::make_gradients(bool wanted) {
  layers::make_gradient(wanted, weight_, weight_gradient_);
  layers::make_gradient(wanted, bias_, bias_gradient_);
}

}  // namespace headlight
