// The layers of the transformer (Vaswani et al. 2017; Pre-LN: Xiong et al. 2020).
#pragma once

#include <cstdint>

#include "headlight/layers/feed_forward.h"
#include "headlight/layers/linear.h"
#include "headlight/layers/multi_head_attention.h"

namespace headlight {

// Where the normalisation stands around each part F of a layer.
enum class Norm : std::uint8_t {
  post,  // x ← LN(x + F(x)): the original transformer, BERT
  pre    // x ← x + F(LN(x)): GPT-2
};

struct TransformerLayerOptions {
  // E
  std::int64_t width = 0;
  std::int64_t heads = 1;
  // F; 0: 4 · width
  std::int64_t feed_forward_width = 0;
  Norm norm = Norm::post;
  Activation activation = Activation::gelu;
  float layer_norm_epsilon = 1e-5f;
  // Probability of dropping an activation in training, in [0, 1). Inference, which is all there is, drops none.
  float dropout = 0.1f;
  // Whether products and normalisations have one.
  bool bias = true;
};

// Self-attention, then feed-forward. Parameters as in nn.TransformerEncoderLayer: self_attn.*, linear1.*, linear2.*,
// norm1.*, norm2.*.
class HEADLIGHT_API TransformerEncoderLayer : public Layer {
 public:
  explicit TransformerEncoderLayer(const TransformerLayerOptions& options);

  // x [B, L, E] → y [B, L, E]; y may be x. `options` are those of the self-attention: masks, lengths, packed sequences,
  // probabilities. `heads`: what the self-attention's heads give W_O.
  void forward(Engine& engine, View<const float, 3> x, View<float, 3> y, const AttentionOptions& options = {},
               const HeadAccess& heads = {}) const;

  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t batch, std::int64_t length) const;
  void reserve(Engine& engine, std::int64_t batch, std::int64_t length) const;

  void append_parameters(const std::string& prefix, std::vector<Parameter>& list, const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool open) noexcept override;

 private:
  [[nodiscard]] std::string_view type_name() const noexcept override { return "TransformerEncoderLayer"; }

  Norm norm_;
  MultiHeadAttention self_attention_;
  FeedForward feed_forward_;
  LayerNorm norm1_;
  LayerNorm norm2_;
};

// Causal self-attention, attention to a memory, then feed-forward. Parameters as in nn.TransformerDecoderLayer:
// self_attn.*, multihead_attn.*, linear1.*, linear2.*, norm1.*, norm2.*, norm3.*.
class HEADLIGHT_API TransformerDecoderLayer : public Layer {
 public:
  explicit TransformerDecoderLayer(const TransformerLayerOptions& options);

  // x [B, L, E], memory [B, Lm, E] → y [B, L, E]; y may be x. Position i of x sees the positions up to i and the whole
  // memory, unless the options say otherwise.
  void forward(Engine& engine, View<const float, 3> x, View<const float, 3> memory, View<float, 3> y,
               const AttentionOptions& self_options = {.causal = Causal::top_left},
               const AttentionOptions& memory_options = {}) const;

  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t batch, std::int64_t length,
                                            std::int64_t memory_length) const;
  void reserve(Engine& engine, std::int64_t batch, std::int64_t length, std::int64_t memory_length) const;

  void append_parameters(const std::string& prefix, std::vector<Parameter>& list, const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool open) noexcept override;

 private:
  [[nodiscard]] std::string_view type_name() const noexcept override { return "TransformerDecoderLayer"; }

  Norm norm_;
  MultiHeadAttention self_attention_;
  MultiHeadAttention memory_attention_;
  FeedForward feed_forward_;
  LayerNorm norm1_;
  LayerNorm norm2_;
  LayerNorm norm3_;
};

}  // namespace headlight
