// A stack of transformer encoder layers, put together from the engine's public parts so that the residual connections
// can be left out, which the layers themselves do not offer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headlight/layers.h"
#include "headlight/optimizer.h"

namespace headlight::program {

struct DepthOptions {
  std::int64_t depth = 6;
  Norm norm = Norm::pre;
  bool residual = true;
  std::int64_t width = 64;
  std::int64_t heads = 4;
  std::int64_t vocabulary = 16;
  std::int64_t sequences = 16, length = 16;  // of a batch
  std::uint64_t seed = 0;
};

// TransformerEncoderLayer without dropout, with or without "x +".
class DepthLayer {
 public:
  DepthLayer(const DepthOptions& options, std::int64_t number);

  // x [B, L, E] → y [B, L, E], keeping what backward() needs; x stays as it is until then.
  void forward(Engine& engine, View<const float, 3> x, View<float, 3> y);
  // The gradient of y becomes that of x; the parameters' grow.
  void backward(Engine& engine, View<const float, 3> x, View<float, 3> gradient);

  [[nodiscard]] std::vector<Parameter> parameters();

 private:
  [[nodiscard]] std::array<Layer*, 4> parts() { return {&attention_, &feed_forward_, &norm1_, &norm2_}; }
  template <class Part>
  void part_forward(Engine& engine, LayerNorm& norm, View<const float, 3> x, View<float, 3> inner, View<float, 3> y,
                    Part part);
  template <class Part>
  void part_backward(Engine& engine, LayerNorm& norm, View<const float, 3> x, View<const float, 3> inner,
                     View<float, 3> gradient, Part part);

  Norm norm_;
  bool residual_;
  MultiHeadAttention attention_;
  FeedForward feed_forward_;
  LayerNorm norm1_, norm2_;
  SavedState attention_saved_, feed_forward_saved_;
  Tensor<float, 3> inner1_, between_, inner2_, sum_;  // [B, L, E]
};

// A task that no token can do alone: to say at place i what stands at place L − 1 − i. Embeddings, normalised; the
// layers; with Pre-LN a last normalisation; logits.
class DepthStack {
 public:
  explicit DepthStack(const DepthOptions& options);

  // Forward and backward over the batch of this number; the gradients are those of this batch alone. The mean loss.
  double learn_from(Engine& engine, std::uint64_t batch);
  // The norm of all gradients of each layer.
  [[nodiscard]] std::vector<double> gradient_norms() const;
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  void draw(std::uint64_t batch);

  DepthOptions options_;
  std::int64_t tokens_;
  Encoder embedding_;
  std::vector<DepthLayer> layers_;
  LayerNorm last_norm_;
  Linear head_;
  std::vector<Parameter> parameters_;
  std::vector<std::vector<Parameter>> of_layers_;
  std::vector<std::int64_t> ids_, positions_, labels_, offsets_;
  SavedState embedding_saved_;
  std::vector<Tensor<float, 3>> hidden_;  // [depth + 1] of [B, L, E]
  Tensor<float, 3> gradient_;
  Tensor<float, 2> normalized_, logits_;
};

}  // namespace headlight::program
