#include "headlight/layers/linear.h"

#include "headlight/normalization.h"
#include "layers/initializer.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/sizes.h"
#include "ops/check.h"

namespace headlight {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias)
    : weight_({layers::at_least(1, "Linear", "out_features", out_features),
               layers::at_least(1, "Linear", "in_features", in_features)}) {
  if (bias) bias_ = Tensor<float, 1>({out_features});
}

void Linear::forward(Engine& engine, View<const float, 2> x, View<float, 2> y, const LinearEpilogue& epilogue) const {
  const std::array<std::int64_t, 2> expected = {-1, in_features()};
  ops::check_shape("Linear", "x", x.shape, expected, "[N, in_features]");
  layers::multiply(
      engine, x, weight_, packed_, y,
      {.bias = layers::values_of(bias_), .activation = epilogue.activation, .residual = epilogue.residual});
}

std::size_t Linear::workspace_bytes(const Engine& engine, std::int64_t rows) const {
  return layers::product_bytes(engine, rows, weight_, packed_);
}

void Linear::reserve(Engine& engine, std::int64_t rows) const {
  layers::reserve_product(engine, rows, weight_, packed_);
}

void Linear::append_parameters(const std::string& prefix, std::vector<Parameter>& list, const Weights*) {
  layers::append(list, prefix + "weight", weight_);
  layers::append(list, prefix + "bias", bias_);
}

void Linear::initialize_from(layers::Initializer& initializer) {
  initializer.xavier(layers::values_of(weight_), in_features(), out_features());
  initializer.constant(layers::values_of(bias_), 0.0f);
}

void Linear::set_open(bool open) noexcept { packed_.set_open(open); }

LayerNorm::LayerNorm(std::int64_t width, float epsilon, bool bias)
    : weight_({layers::at_least(1, "LayerNorm", "width", width)}), epsilon_(epsilon) {
  for (float& weight : weight_) weight = 1.0f;
  if (bias) bias_ = Tensor<float, 1>({width});
}

void LayerNorm::forward(Engine& engine, View<const float, 2> x, View<float, 2> y) const {
  layer_norm(engine, x, y,
             {.weight = layers::values_of(weight_), .bias = layers::values_of(bias_), .epsilon = epsilon_});
}

void LayerNorm::append_parameters(const std::string& prefix, std::vector<Parameter>& list, const Weights*) {
  layers::append(list, prefix + "weight", weight_);
  layers::append(list, prefix + "bias", bias_);
}

void LayerNorm::initialize_from(layers::Initializer& initializer) {
  initializer.constant(layers::values_of(weight_), 1.0f);
  initializer.constant(layers::values_of(bias_), 0.0f);
}

}  // namespace headlight
