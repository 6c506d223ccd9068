// Training: what a forward pass keeps for its backward pass, and which random numbers it draws.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headlight/attention.h"
#include "headlight/dropout.h"
#include "headlight/export.h"
#include "headlight/layers/training_attention.h"
#include "headlight/number_type.h"
#include "headlight/tensor.h"

namespace headlight {

class Layer;

// What is kept between forward and backward. The gradients are the same to the bit whatever is chosen: what was not
// kept is computed again.
enum class Checkpoint : std::uint8_t {
  // Everything that grows with L alone: query, key, value, the heads' outputs, log-sum-exp, sums before and results of
  // normalisations, the feed-forward part before its activation. Never the probabilities.
  keep_linear,
  // Nothing: a layer's input is in the caller's hands anyway, and backward computes the layer again. In an Encoder, the
  // input of every layer.
  layer_input,
  // In an Encoder: the input of every k-th layer; backward computes k layers again at a time. With n layers and k = √n
  // the memory is that of some 2·√n inputs and k layers (Chen et al. 2016). For a layer alone: layer_input.
  every_k_layers
};

// The random numbers of one step. With the same seed and step every call draws the same, whatever the checkpoints, the
// threads and what came before: so a run stopped after step n goes on with step n + 1 as if nothing had happened.
struct TrainingStep {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  // Where a layer stands among how many: whoever puts layers together counts them, so that no two draw the same. An
  // Encoder does that for its own, of which it has layers + 1.
  std::uint32_t layer = 0;
  std::uint32_t layers = 1;

  // Each layer has eight streams a step; they begin again after 2³² / (8 · layers) steps.
  static constexpr std::uint32_t kStreams = 8;
  [[nodiscard]] Dropout dropout(float probability, std::uint32_t place) const noexcept {
    const std::uint64_t stream = (step * layers + layer) * kStreams + place;
    return {probability, seed, static_cast<std::uint32_t>(stream)};
  }
};

// The state between forward and backward of one layer and one batch: memory that grows to what the largest batch needs
// and is kept for the next step. backward() may be called once or often; the next forward() overwrites it. What the
// caller handed to forward() (inputs, options and what their views and spans show) must stay as it was until then.
//
// Activations of bfloat16: parameters, their gradients, x, y and residual sums stay float32, and so do normalisations,
// softmax, biases, dropout and all sums. But
//   products with weights multiply bfloat16 numbers, in the forward pass and in both gradients that each has in the
//   backward pass: both operands are rounded as they come, parameters anew in every pass (PackedMatrix says how);
//   queries, keys, values, the concatenated heads and the feed-forward part before its activation are rounded as they
//   leave the product or the attention that makes them, and kept so, in half the memory;
//   the gradient of the concatenated heads is rounded, too, and attention is that over bfloat16, both ways
//   (headlight/attention.h, attention_backward.h).
// What weighs heads or gates them (Merge) multiplies in float32, and heads are float32 before it. This is what others
// call mixed precision; bfloat16 has the range of float32, so that no loss needs to be scaled. Bits do not depend on
// threads or checkpoints here either.
class HEADLIGHT_API SavedState {
 public:
  // k for every_k_layers; 0: √n, rounded. `attention` is what the layers run for attention, both ways.
  explicit SavedState(Checkpoint checkpoint = Checkpoint::keep_linear, std::int64_t k = 0,
                      const TrainingAttention& attention = fused_attention());
  // With activations of that type, float32 or bfloat16; throws std::invalid_argument for another.
  explicit SavedState(NumberType activations, Checkpoint checkpoint = Checkpoint::keep_linear, std::int64_t k = 0);

  // What it was made with.
  [[nodiscard]] NumberType activations() const noexcept { return activations_; }
  [[nodiscard]] Checkpoint checkpoint() const noexcept { return checkpoint_; }
  [[nodiscard]] std::int64_t k() const noexcept { return k_; }
  [[nodiscard]] const TrainingAttention& attention() const noexcept { return *attention_; }
  // Of memory held.
  [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(memory_.size()); }

  // Internal: what the last forward pass was.
  struct Call {
    const Layer* layer = nullptr;
    // Its options, each a number: another layer may have been assigned to it since.
    std::array<std::int64_t, 12> made_with{};
    std::array<std::int64_t, 3> shape{};  // B, L, and the memory's L of a decoder or the keys' of attention
    TrainingStep step{};
    std::array<AttentionOptions, 2> options{};
    int inputs = 0;  // of attention: which of query, key and value were one (SharedInputs)
  };
  // Internal: memory for a call, contents undefined. Throws OutOfMemory.
  // Forgets the pass before and gives room for the next one, which counts from its commit() on: one that throws leaves
  // nothing to go back from.
  std::byte* begin(std::size_t bytes);
  void commit(const Call& call) { call_ = call; }
  [[nodiscard]] const Call& call() const noexcept { return call_; }
  [[nodiscard]] std::byte* data() const noexcept { return const_cast<std::byte*>(memory_.data()); }

 private:
  Checkpoint checkpoint_;
  std::int64_t k_;
  const TrainingAttention* attention_;
  NumberType activations_ = NumberType::float32;
  Call call_;
  Tensor<std::byte, 1> memory_;
};

}  // namespace headlight
