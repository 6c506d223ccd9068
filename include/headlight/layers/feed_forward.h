// The position-wise feed-forward part of a transformer layer.
#pragma once

#include <cstdint>

#include "headlight/activation.h"
#include "headlight/layers/linear.h"

namespace headlight {

// What a FeedForward is made of.
struct FeedForwardOptions {
  // E
  std::int64_t width = 0;
  // F; 0: 4 · width
  std::int64_t hidden_width = 0;
  Activation activation = Activation::gelu;
  bool bias = true;
  // Of the activations, in training: in [0, 1).
  float dropout = 0.0f;
};

// y = activation(x W_1ᵀ + b_1) W_2ᵀ + b_2 (+ residual). Parameters: linear1.weight [F, E], linear1.bias [F],
// linear2.weight [E, F], linear2.bias [E].
class HEADLIGHT_API FeedForward : public Layer {
 public:
  // Throws std::invalid_argument for sizes < 1 and dropout outside [0, 1), OutOfMemory.
  explicit FeedForward(const FeedForwardOptions& options);

  // x [B, L, E] → y [B, L, E]; y may be x, and residual may be either.
  void forward(Engine& engine, View<const float, 3> x, View<float, 3> y, View<const float, 3> residual = {}) const;

  // Training: y = dropout(activation(x W_1ᵀ + b_1)) W_2ᵀ + b_2 (+ residual). y must lie apart from x. y may be left out
  // where only the state is wanted.
  void forward(Engine& engine, View<const float, 3> x, View<float, 3> y, SavedState& saved, const TrainingStep& step,
               View<const float, 3> residual = {}) const;
  // x is that of forward(). x_gradient (+ residual) may be left out or be y_gradient, not x; residual may be either.
  void backward(Engine& engine, View<const float, 3> x, const SavedState& saved, View<const float, 3> y_gradient,
                View<float, 3> x_gradient, View<const float, 3> residual = {});

  // What forward() takes from the engine for that many; and taking it now, so that not even the first call allocates.
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t batch, std::int64_t length) const;
  void reserve(Engine& engine, std::int64_t batch, std::int64_t length) const;

  void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                         const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool open) noexcept override;
  void make_gradients(bool wanted) override;

 private:
  [[nodiscard]] std::string_view type_name() const noexcept override { return "FeedForward"; }
  [[nodiscard]] std::int64_t hidden_width() const noexcept { return linear1_.out_features(); }
  // Both passes of training with `hidden` [B, L, F], x W_1ᵀ + b_1, given. Its type is that of the activations.
  void forward_from(Engine& engine, View<const float, 3> x, View<float, 3> y, const MutableTypedView<3>& hidden,
                    const Dropout& dropout, View<const float, 3> residual, const layers::RowVisitor& rows) const;
  void backward_from(Engine& engine, View<const float, 3> x, const TypedView<3>& hidden, const Dropout& dropout,
                     View<const float, 3> y_gradient, View<float, 3> x_gradient, View<const float, 3> residual,
                     const layers::RowVisitor& rows);
  // Of what inference keeps between the products, and the memory that so many rows of it take.
  [[nodiscard]] NumberType hidden_type(const Engine& engine) const noexcept;
  [[nodiscard]] std::size_t hidden_bytes(const Engine& engine, std::int64_t rows) const noexcept;

  FeedForwardOptions options_;
  Linear linear1_;
  Linear linear2_;
};

}  // namespace headlight
