// From token ids to hidden states: embeddings and a stack of transformer encoder layers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/layers/transformer.h"

namespace headlight {

// What an Encoder is made of.
struct EncoderOptions {
  // Rows of the word, position and token-type tables; token_types = 0: there is no such table.
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;
  std::int64_t token_types = 0;
  // E
  std::int64_t width = 0;
  std::int64_t heads = 1;
  // F; 0: 4 · width
  std::int64_t feed_forward_width = 0;
  std::int64_t layers = 0;
  // post: the embeddings are normalised, the last layer's output is its own; pre: the other way round.
  Norm norm = Norm::post;
  Activation activation = Activation::gelu;
  float layer_norm_epsilon = 1e-12f;
  float dropout = 0.1f;
  // How the heads of each layer become one representation again.
  Merge merge = Merge::concatenate;
  // Whether initialize() begins with heads in spaces at right angles; see MultiHeadAttentionOptions.
  bool orthogonal = false;

  // Those of each of its layers.
  [[nodiscard]] TransformerLayerOptions layer_options() const noexcept {
    return {.width = width,
            .heads = heads,
            .feed_forward_width = feed_forward_width,
            .norm = norm,
            .activation = activation,
            .layer_norm_epsilon = layer_norm_epsilon,
            .dropout = dropout,
            .merge = merge,
            .orthogonal = orthogonal};
  }
};

// N tokens of n sequences, one after another. There is no padding: a token that must not be seen is left out, and the
// others keep their positions.
struct EncoderInput {
  // [N] each, as rows of the three tables; a list is empty where there is no such table. Positions also are what a
  // Network turns heads by.
  std::span<const std::int64_t> ids{};
  std::span<const std::int64_t> positions{};
  std::span<const std::int64_t> token_types{};
  // [n + 1], ascending from 0 to N: sequence s is tokens offsets[s] … offsets[s+1] − 1.
  std::span<const std::int64_t> offsets{};
};

// Softmax weights of one layer to write out; see AttentionOptions. Across sequences they are 0: own_keys leaves those
// out.
struct LayerProbabilities {
  std::int64_t layer = 0;
  // per_head [1, H, R, N], averaged [1, R, N], or the longest sequence for N with own_keys; `rows` indices of tokens.
  Probabilities probabilities{};
};

// What the heads of one layer give, to write out or to silence; see HeadAccess.
struct LayerHeads {
  std::int64_t layer = 0;
  // [N, H · D], heads by head_dim of that layer: an Encoder's E
  View<float, 2> outputs{};
  std::span<const std::int64_t> silenced{};
  // [N, H · D]
  View<float, 2> scaled_outputs{};
};

// hidden = LN(word[ids] + position[positions] + token_type[token_types]), then every layer (Norm::post, BERT; Devlin et
// al. 2019). With Norm::pre the LN comes after the last layer instead.
//
// Parameters: word_embeddings.weight [vocabulary, E], position_embeddings.weight [max_positions, E],
// token_type_embeddings.weight [token_types, E], norm.weight and norm.bias [E] (of the embeddings, or the last), and
// layers.N.* of TransformerEncoderLayer.
class HEADLIGHT_API Encoder : public Layer {
 public:
  // Throws std::invalid_argument for sizes that do not fit together, OutOfMemory. An encoder that was moved from may be
  // assigned to, or destroyed.
  explicit Encoder(const EncoderOptions& options);
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;
  ~Encoder() override;

  // hidden [N, E]. The rows of a sequence have the same bits whatever stands beside it. Each of the two lists names a
  // layer at most once; what they ask for lies apart from hidden and from each other.
  //
  // Throws std::invalid_argument, before anything is written, where a list names a layer twice or one that is not
  // there, or an entry asks for what its layer does not have: the message names the entry, "heads[1].outputs".
  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
               std::span<const LayerProbabilities> probabilities = {}, std::span<const LayerHeads> heads = {}) const;

  // Training: the same with dropout (on the embeddings too, as in BERT and GPT-2), keeping what backward() needs.
  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, SavedState& saved,
               const TrainingStep& step) const;
  // From the gradient of hidden [N, E] those of all parameters, which are added to; `input` is that of forward().
  // `visitor`, where given, looks at the heads of every layer on the way: outputs and gradients are [1, N, E].
  void backward(Engine& engine, const EncoderInput& input, const SavedState& saved,
                View<const float, 2> hidden_gradient, HeadVisitor* visitor = nullptr);

  // Those that it was made with, every size set.
  [[nodiscard]] const EncoderOptions& options() const noexcept { return options_; }
  // What forward() takes from the engine for that many tokens or fewer, whatever sequences they are; and taking it now,
  // so that not even the first call allocates.
  [[nodiscard]] std::size_t workspace_bytes(const Engine& engine, std::int64_t tokens) const;
  void reserve(Engine& engine, std::int64_t tokens) const;

  void append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                         const Weights* named) override;
  void initialize_from(layers::Initializer& initializer) override;
  void set_open(bool open) noexcept override;
  void make_gradients(bool wanted) override;

 private:
  struct State;

  [[nodiscard]] std::string_view type_name() const noexcept override { return "Encoder"; }
  void check(const EncoderInput& input, const View<float, 2>& hidden, std::span<const LayerProbabilities> probabilities,
             std::span<const LayerHeads> heads) const;

  EncoderOptions options_;
  std::unique_ptr<State> state_;
};

}  // namespace headlight
