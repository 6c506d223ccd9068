// The network of a model, whichever it is, as those see it who look at its heads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "headlight/layers/network.h"
#include "headlight/models/text_encoder.h"

namespace headlight::program {

// Of a network whose layers all have the same heads.
struct NetworkSizes {
  std::int64_t layers = 0;
  std::int64_t width = 0;            // of hidden states
  std::int64_t heads = 0;            // of queries
  std::int64_t key_value_heads = 0;  // which groups of them share
  std::int64_t head_dim = 0;
  Merge merge = Merge::concatenate;

  // Of all heads side by side.
  [[nodiscard]] std::int64_t columns() const noexcept { return heads * head_dim; }
  // Whether the last product takes a sum of heads, which is as wide as one.
  [[nodiscard]] bool merges_to_one_head() const noexcept {
    return merge == Merge::average || merge == Merge::weighted || merge == Merge::weighted_by_input;
  }
  [[nodiscard]] std::int64_t merged_width() const noexcept { return merges_to_one_head() ? head_dim : columns(); }
};

class ModelNetwork {
 public:
  // Throws models::FileError where layers differ in their heads, or there are none; `name` is the model's. The model
  // outlives it.
  ModelNetwork(const models::TextEncoder& model, const std::string& name);

  [[nodiscard]] const NetworkSizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] bool has_token_types() const noexcept { return has_token_types_; }

  // As that of Encoder and Network. Positions are those of TextEncoder::positions().
  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
               std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) const;

  [[nodiscard]] Weights weights() const;
  // Of a layer: W_q [H · D, E], W_k [Hkv · D, E], W_o [E, merged_width()].
  struct Projections {
    View<const float, 2> query, key, output;
  };
  [[nodiscard]] Projections projections(const Weights& weights, std::int64_t layer) const;

  // One of its first layers, and what it has behind them, without weights.
  [[nodiscard]] std::variant<Encoder, Network> first_layers(std::int64_t layers) const;
  // A copy of it that trains, without dropout.
  [[nodiscard]] std::variant<Encoder, Network> trainable() const;

 private:
  std::variant<const Encoder*, const Network*> network_;
  NetworkSizes sizes_;
  bool has_token_types_ = false;
};

// How many tokens a model puts before a text and behind it: [CLS] and [SEP], or others.
struct TokensAround {
  std::int64_t before = 0;
  std::int64_t behind = 0;

  [[nodiscard]] std::int64_t count() const noexcept { return before + behind; }
};
[[nodiscard]] TokensAround tokens_around(const models::TextEncoder& model);

}  // namespace headlight::program
