// The layers of the transformer (Vaswani et al. 2017; Pre-LN: Xiong et al. 2020).
#pragma once

#include <cstdint>
#include <memory>

#include "headlight/layers/feed_forward.h"
#include "headlight/layers/linear.h"
#include "headlight/layers/multi_head_attention.h"

namespace headlight {

// Where the normalisation stands around each part F of a layer.
enum class Norm : std::uint8_t {
  post,  // x ← LN(x + F(x)): the original transformer, BERT
  pre    // x ← x + F(LN(x)): GPT-2
};

// What a transformer layer is made of.
struct TransformerLayerOptions {
  // E
  std::int64_t width = 0;
  std::int64_t heads = 1;
  // F; 0: 4 · width
  std::int64_t feed_forward_width = 0;
  Norm norm = Norm::post;
  Activation activation = Activation::gelu;
  float layer_norm_epsilon = 1e-5f;
  // Probability of dropping a number in training, in [0, 1): as in nn.TransformerEncoderLayer of the probabilities, of
  // each part's output and of the feed-forward activations. Inference drops none.
  float dropout = 0.1f;
  // Whether products and normalisations have one.
  bool bias = true;
  // How the heads of each attention become one representation again.
  Merge merge = Merge::concatenate;
  // Whether initialize() begins with heads in spaces at right angles; see MultiHeadAttentionOptions.
  bool orthogonal = false;
};

// Self-attention, then feed-forward. Parameters as in nn.TransformerEncoderLayer: self_attn.*, linear1.*, linear2.*,
// norm1.*, norm2.*.
class HEADLIGHT_API TransformerEncoderLayer : public Layer {
 public:
  // Throws std::invalid_argument for sizes that do not fit together, OutOfMemory. A layer that was moved from may be
  // assigned to, or destroyed.
  explicit TransformerEncoderLayer(const TransformerLayerOptions& options);
  TransformerEncoderLayer(TransformerEncoderLayer&&) noexcept;
  TransformerEncoderLayer& operator=(TransformerEncoderLayer&&) noexcept;
  ~TransformerEncoderLayer() override;

  // x [B, L, E] → y [B, L, E]; y may be x. `options` are those of the self-attention: masks, lengths, packed sequences,
  // probabilities. `heads`: what the self-attention's heads give W_O. What is asked for there lies apart from x, y and
  // each other; throws std::invalid_argument, naming both, where it does not.
  void forward(Engine& engine, View<const float, 3> x, View<float, 3> y, const AttentionOptions& options = {},
               const HeadAccess& heads = {}) const;

  // Training: the same with dropout, keeping what backward() needs. y must lie apart from x. Of the options,
  // log_sum_exp and dropout are the layer's own.
  void forward(Engine& engine, View<const float, 3> x, View<float, 3> y, SavedState& saved, const TrainingStep& step,
               const AttentionOptions& options = {}) const;
  // From the gradient of y [B, L, E] that of x, the x of forward(); the parameters' gradients are added to. x_gradient
  // may be y_gradient. `visit`: who looks at the self-attention's heads on the way.
  void backward(Engine& engine, View<const float, 3> x, const SavedState& saved, View<const float, 3> y_gradient,
                View<float, 3> x_gradient, const HeadVisit& visit = {});

  // What forward() takes from the engine for that many; and taking it now, so that not even the first call allocates.
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t batch, std::int64_t length) const;
  void reserve(Engine& engine, std::int64_t batch, std::int64_t length) const;

  void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                         const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool open) noexcept override;
  void make_gradients(bool wanted) override;

 private:
  struct State;

  [[nodiscard]] std::string_view type_name() const noexcept override { return "TransformerEncoderLayer"; }

  TransformerLayerOptions options_;
  std::unique_ptr<State> state_;
};

// Causal self-attention, attention to a memory, then feed-forward. Parameters as in nn.TransformerDecoderLayer:
// self_attn.*, multihead_attn.*, linear1.*, linear2.*, norm1.*, norm2.*, norm3.*.
class HEADLIGHT_API TransformerDecoderLayer : public Layer {
 public:
  // As TransformerEncoderLayer's.
  explicit TransformerDecoderLayer(const TransformerLayerOptions& options);
  TransformerDecoderLayer(TransformerDecoderLayer&&) noexcept;
  TransformerDecoderLayer& operator=(TransformerDecoderLayer&&) noexcept;
  ~TransformerDecoderLayer() override;

  // x [B, L, E], memory [B, Lm, E] → y [B, L, E]; y may be x. Position i of x sees the positions up to i and the whole
  // memory, unless the options say otherwise. What they ask for lies apart from x, memory, y and each other; throws
  // std::invalid_argument, naming both, where it does not.
  void forward(Engine& engine, View<const float, 3> x, View<const float, 3> memory, View<float, 3> y,
               const AttentionOptions& self_options = {.causal = Causal::top_left},
               const AttentionOptions& memory_options = {}) const;

  // Training: the same with dropout, keeping what backward() needs. y must lie apart from x and memory. Of the options,
  // log_sum_exp and dropout are the layer's own.
  void forward(Engine& engine, View<const float, 3> x, View<const float, 3> memory, View<float, 3> y, SavedState& saved,
               const TrainingStep& step, const AttentionOptions& self_options = {.causal = Causal::top_left},
               const AttentionOptions& memory_options = {}) const;
  // From the gradient of y [B, L, E] that of x (which may be y_gradient) and of the memory [B, Lm, E], where given: it
  // is added to what is there, for many layers look at one memory. But for that no gradient may overlap anything.
  void backward(Engine& engine, View<const float, 3> x, View<const float, 3> memory, const SavedState& saved,
                View<const float, 3> y_gradient, View<float, 3> x_gradient, View<float, 3> memory_gradient = {});

  // What forward() takes from the engine for that many; and taking it now, so that not even the first call allocates.
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t batch, std::int64_t length,
                                            std::int64_t memory_length) const;
  void reserve(Engine& engine, std::int64_t batch, std::int64_t length, std::int64_t memory_length) const;

  void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                         const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool open) noexcept override;
  void make_gradients(bool wanted) override;

 private:
  struct State;

  [[nodiscard]] std::string_view type_name() const noexcept override { return "TransformerDecoderLayer"; }

  TransformerLayerOptions options_;
  std::unique_ptr<State> state_;
};

}  // namespace headlight
