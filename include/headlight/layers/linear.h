// y = x Wᵀ + b, and the normalisation that goes with it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "headlight/activation.h"
#include "headlight/layers/layer.h"
#include "headlight/typed_view.h"

namespace headlight {

// What is done to a product on its way out.
struct LinearEpilogue {
  Activation activation = Activation::none;  // of x Wᵀ + b
  // [N, out_features], added after the activation; may be y itself.
  View<const float, 2> residual{};
};

// nn.Linear: weight [out_features, in_features], bias [out_features].
class HEADLIGHT_API Linear : public Layer {
 public:
  // Throws std::invalid_argument for features < 1.
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true);

  // Columns of x, and of y.
  [[nodiscard]] std::int64_t in_features() const noexcept { return weight_.columns(); }
  [[nodiscard]] std::int64_t out_features() const noexcept { return weight_.rows(); }

  // x [N, in_features] → y [N, out_features] = activation(x Wᵀ + b) + residual. y must not overlap x.
  void forward(Engine& engine, View<const float, 2> x, View<float, 2> y, const LinearEpilogue& epilogue = {}) const;

  // From the gradient of y = x Wᵀ + b: x_gradient = y_gradient W (+ residual), weight.gradient += y_gradientᵀ x,
  // bias.gradient += Σ_rows y_gradient. x_gradient and residual [N, in_features] may be left out; residual may be
  // x_gradient itself. x_gradient must overlap neither x nor y_gradient.
  void backward(Engine& engine, View<const float, 2> x, View<const float, 2> y_gradient, View<float, 2> x_gradient,
                View<const float, 2> residual = {});

  // What forward() takes from the engine for that many; and taking it now, so that not even the first call allocates.
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t rows) const;
  void reserve(Engine& engine, std::int64_t rows) const;

  void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                         const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool open) noexcept override;
  void make_gradients(bool wanted) override;

  // Internal, for layers made of layers: the type that forward() multiplies in now; and the same where x or y may be
  // bfloat16, as they may unless that is float32.
  [[nodiscard]] NumberType product_type() const noexcept;
  void forward_typed(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y,
                     const LinearEpilogue& epilogue) const;
  // In training, with activations of a SavedState's type (headlight/layers/training.h): x, y and x_gradient may be of
  // it, too.
  void forward_in_training(Engine& engine, NumberType activations, const TypedView<2>& x, const MutableTypedView<2>& y,
                           const LinearEpilogue& epilogue) const;
  void backward_in_training(Engine& engine, NumberType activations, const TypedView<2>& x,
                            View<const float, 2> y_gradient, const MutableTypedView<2>& x_gradient,
                            View<const float, 2> residual);
  // The gradients of weight and bias.
  [[nodiscard]] std::array<std::span<float>, 2> gradients() noexcept;

 private:
  [[nodiscard]] std::string_view type_name() const noexcept override { return "Linear"; }

  WeightMatrix weight_;
  Tensor<float, 1> bias_;  // without memory: none
  Tensor<float, 1> bias_gradient_;
};

// nn.LayerNorm: weight and bias [width].
class HEADLIGHT_API LayerNorm : public Layer {
 public:
  // Throws std::invalid_argument for width < 1, OutOfMemory.
  explicit LayerNorm(std::int64_t width, float epsilon = 1e-5f, bool bias = true);

  // x [N, width] → y [N, width]; y may be x.
  void forward(Engine& engine, View<const float, 2> x, View<float, 2> y) const;
  // From the gradient of y, that of x (+ residual), and weight.gradient and bias.gradient grow; see
  // layer_norm_backward(). x_gradient may be left out, and may be any of the others.
  void backward(Engine& engine, View<const float, 2> x, View<const float, 2> y_gradient, View<float, 2> x_gradient,
                View<const float, 2> residual = {});

  void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                         const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool) noexcept override {}
  void make_gradients(bool wanted) override;

 private:
  [[nodiscard]] std::string_view type_name() const noexcept override { return "LayerNorm"; }

  Tensor<float, 1> weight_;
  Tensor<float, 1> bias_;
  Tensor<float, 1> weight_gradient_;
  Tensor<float, 1> bias_gradient_;
  float epsilon_;
};

}  // namespace headlight
