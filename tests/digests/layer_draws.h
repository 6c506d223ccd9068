// Layers with random options and weights, and what their forward passes take.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "digests/attention_call.h"
#include "headlight/layers.h"

namespace headlight::test {

inline constexpr Merge kDigestMerges[] = {Merge::concatenate,       Merge::average,       Merge::weighted,
                                          Merge::weighted_by_input, Merge::gated_by_head, Merge::gated_by_element};
inline constexpr Activation kDigestActivations[] = {Activation::none, Activation::relu, Activation::gelu,
                                                    Activation::gelu_tanh};

// Random weights, and then a layer that packs them or not.
void draw_weights(Random& random, Layer& layer);

// `dropout`: whether training drops anything.
MultiHeadAttentionOptions draw_attention_layer(Random& random, bool dropout, std::ostream& words);
FeedForwardOptions draw_feed_forward(Random& random, bool dropout, std::ostream& words);
TransformerLayerOptions draw_transformer_layer(Random& random, bool dropout, std::ostream& words);
EncoderOptions draw_encoder(Random& random, bool dropout, std::ostream& words);

// Tokens of one to five sequences for an encoder.
struct DigestTokens {
  DigestTokens(Random& random, const EncoderOptions& encoder, std::ostream& words);

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(ids.size()); }
  [[nodiscard]] std::int64_t longest() const;
  [[nodiscard]] EncoderInput input() const;

  std::vector<std::int64_t> ids, positions, token_types, offsets;
};

// [B, L, E], contiguous, of random numbers.
inline Tensor<float, 3> draw_activations(Random& random, std::int64_t batch, std::int64_t length, std::int64_t width) {
  return random.normal_tensor<3>({batch, length, width});
}

}  // namespace headlight::test
