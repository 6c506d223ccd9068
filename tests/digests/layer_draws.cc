#include "digests/layer_draws.h"

#include <algorithm>

namespace headlight::test {
namespace layer_draws {

constexpr std::int64_t kHeadDims[] = {1, 4, 7, 8, 8, 16, 16, 20};
constexpr float kDropouts[] = {0.0f, 0.1f, 0.1f, 0.3f};

float draw_dropout(Random& random, bool dropout) {
  const float drawn = one_of(random, kDropouts);
  return dropout ? drawn : 0.0f;
}

}  // namespace layer_draws

void draw_weights(Random& random, Layer& layer) {
  if (random.once_in(3)) {
    layer.initialize(random.next());
  } else {
    for (const Parameter& parameter : layer.parameters()) {
      const View<float, 1> values(parameter.values.data(), {static_cast<std::int64_t>(parameter.values.size())});
      fill(random, values, 0.3f);
    }
  }
  if (random.once_in(2)) layer.freeze();
}

MultiHeadAttentionOptions draw_attention_layer(Random& random, bool dropout, std::ostream& words) {
  MultiHeadAttentionOptions options;
  options.key_value_heads = random.integer(1, 3);
  options.heads = options.key_value_heads * (random.once_in(3) ? 2 : 1);
  options.width = options.heads * one_of(random, layer_draws::kHeadDims);
  options.bias = !random.once_in(4);
  options.packed_projection = random.once_in(2);
  if (random.once_in(4)) {
    options.packed_projection = false;
    options.key_width = random.integer(1, 40);
    options.value_width = random.integer(1, 40);
  }
  options.dropout = layer_draws::draw_dropout(random, dropout);
  options.merge = one_of(random, kDigestMerges);
  options.orthogonal = random.once_in(4);
  words << " MultiHeadAttention width=" << options.width << " heads=" << options.heads
        << " key_value_heads=" << options.key_value_heads << " key_width=" << options.key_width
        << " value_width=" << options.value_width << " bias=" << options.bias << " dropout=" << options.dropout
        << " merge=" << name(options.merge);
  return options;
}

FeedForwardOptions draw_feed_forward(Random& random, bool dropout, std::ostream& words) {
  FeedForwardOptions options;
  options.width = random.integer(1, 60);
  if (random.once_in(2)) options.hidden_width = random.integer(1, 100);
  options.activation = one_of(random, kDigestActivations);
  options.bias = !random.once_in(4);
  options.dropout = layer_draws::draw_dropout(random, dropout);
  words << " FeedForward width=" << options.width << " hidden_width=" << options.hidden_width
        << " activation=" << static_cast<int>(options.activation) << " bias=" << options.bias
        << " dropout=" << options.dropout;
  return options;
}

TransformerLayerOptions draw_transformer_layer(Random& random, bool dropout, std::ostream& words) {
  TransformerLayerOptions options;
  options.heads = random.integer(1, 4);
  options.width = options.heads * one_of(random, layer_draws::kHeadDims);
  if (random.once_in(2)) options.feed_forward_width = random.integer(1, 100);
  options.norm = random.once_in(2) ? Norm::pre : Norm::post;
  options.activation = one_of(random, kDigestActivations);
  options.dropout = layer_draws::draw_dropout(random, dropout);
  options.bias = !random.once_in(4);
  options.merge = one_of(random, kDigestMerges);
  words << " width=" << options.width << " heads=" << options.heads
        << " feed_forward_width=" << options.feed_forward_width << " norm=" << static_cast<int>(options.norm)
        << " activation=" << static_cast<int>(options.activation) << " dropout=" << options.dropout
        << " bias=" << options.bias << " merge=" << name(options.merge);
  return options;
}

EncoderOptions draw_encoder(Random& random, bool dropout, std::ostream& words) {
  EncoderOptions options;
  options.vocabulary = random.integer(2, 40);
  options.max_positions = random.integer(1, 48);
  options.token_types = random.once_in(2) ? 2 : 0;
  options.heads = random.integer(1, 4);
  options.width = options.heads * one_of(random, layer_draws::kHeadDims);
  if (random.once_in(2)) options.feed_forward_width = random.integer(1, 100);
  options.layers = random.integer(1, 4);
  options.norm = random.once_in(2) ? Norm::pre : Norm::post;
  options.activation = one_of(random, kDigestActivations);
  options.dropout = layer_draws::draw_dropout(random, dropout);
  options.merge = one_of(random, kDigestMerges);
  words << " Encoder vocabulary=" << options.vocabulary << " max_positions=" << options.max_positions
        << " token_types=" << options.token_types << " width=" << options.width << " heads=" << options.heads
        << " feed_forward_width=" << options.feed_forward_width << " layers=" << options.layers
        << " norm=" << static_cast<int>(options.norm) << " activation=" << static_cast<int>(options.activation)
        << " dropout=" << options.dropout << " merge=" << name(options.merge);
  return options;
}

DigestTokens::DigestTokens(Random& random, const EncoderOptions& encoder, std::ostream& words) {
  offsets.push_back(0);
  const std::int64_t sequences = random.integer(1, 5);
  words << " tokens:";
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int64_t length = random.integer(1, std::min<std::int64_t>(encoder.max_positions, 24));
    for (std::int64_t n = 0; n < length; ++n) {
      ids.push_back(random.integer(0, encoder.vocabulary - 1));
      positions.push_back(n);
      if (encoder.token_types > 0) token_types.push_back(random.integer(0, encoder.token_types - 1));
    }
    offsets.push_back(count());
    words << " " << length;
  }
}

std::int64_t DigestTokens::longest() const {
  std::int64_t most = 0;
  for (std::size_t s = 1; s < offsets.size(); ++s) most = std::max(most, offsets[s] - offsets[s - 1]);
  return most;
}

EncoderInput DigestTokens::input() const {
  EncoderInput input;
  input.ids = ids;
  input.positions = positions;
  input.token_types = token_types;
  input.offsets = offsets;
  return input;
}

}  // namespace headlight::test
