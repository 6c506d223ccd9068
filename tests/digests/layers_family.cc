// Forward passes of all layers, and the weights that they begin with.
#include <array>

#include "digests/family.h"
#include "digests/layer_draws.h"

namespace headlight::test {
namespace layers_family {

void linear(DigestCase& c) {
  const std::int64_t in = c.random.integer(1, 900), out = c.random.integer(1, 120), rows = c.random.integer(0, 70);
  Linear layer(in, out, !c.random.once_in(4));
  draw_weights(c.random, layer);
  const Tensor<float, 2> x = c.random.normal_tensor<2>({rows, in});
  Tensor<float, 2> y = c.random.normal_tensor<2>({rows, out});
  LinearEpilogue epilogue;
  epilogue.activation = one_of(c.random, kDigestActivations);
  if (c.random.once_in(3)) epilogue.residual = y;
  c.words << " Linear " << in << "x" << out << " rows=" << rows
          << " activation=" << static_cast<int>(epilogue.activation) << (epilogue.residual ? " residual" : "");
  layer.forward(c.engine, x, y, epilogue);
  c.digest.add(y);
}

void attention_layer(DigestCase& c) {
  const MultiHeadAttentionOptions made = draw_attention_layer(c.random, false, c.words);
  MultiHeadAttention layer(made);
  draw_weights(c.random, layer);
  AttentionSize size;
  size.batch = c.random.integer(1, 3);
  size.query_length = c.random.once_in(8) ? c.random.integer(65, 150) : c.random.integer(1, 40);
  const std::int64_t key_width = made.key_width == 0 ? made.width : made.key_width;
  const std::int64_t value_width = made.value_width == 0 ? made.width : made.value_width;
  const bool self = key_width == made.width && value_width == made.width && c.random.once_in(2);
  size.key_length = self ? size.query_length : c.random.integer(1, 90);
  size.query_heads = made.heads;
  size.key_value_heads = made.key_value_heads;
  size.head_dim = size.value_dim = made.width / made.heads;
  AttentionChoice choice(c.random, size, AttentionChoice::Kind::all, c.words);
  if (c.random.once_in(4)) choice.ask_for_probabilities(c.random, size, c.words);

  const Tensor<float, 3> query = draw_activations(c.random, size.batch, size.query_length, made.width);
  const Tensor<float, 3> key = draw_activations(c.random, size.batch, size.key_length, key_width);
  const Tensor<float, 3> value = draw_activations(c.random, size.batch, size.key_length, value_width);
  const bool one_memory = self || (key_width == value_width && c.random.once_in(2));
  Tensor<float, 3> out(query.shape()), outputs(query.shape()), scaled(query.shape());
  HeadAccess heads;
  const std::array<std::int64_t, 1> silenced = {c.random.integer(0, made.heads - 1)};
  if (c.random.once_in(4)) heads.outputs = outputs;
  if (c.random.once_in(4)) heads.scaled_outputs = scaled;
  if (c.random.once_in(6)) heads.silenced = silenced;
  View<const float, 3> residual;
  if (c.random.once_in(3)) residual = query;
  c.words << (self ? " self" : one_memory ? " one_memory" : "") << size;
  const View<const float, 3> keys = self ? query : key;
  layer.forward(c.engine, query, keys, one_memory ? keys : value, out, choice.options, residual, heads);
  c.digest.add(out);
  c.digest.add(heads.outputs);
  c.digest.add(heads.scaled_outputs);
  c.digest.add(choice.options.probabilities.per_head);
  c.digest.add(choice.options.probabilities.averaged);
}

void feed_forward(DigestCase& c) {
  const FeedForwardOptions made = draw_feed_forward(c.random, false, c.words);
  FeedForward layer(made);
  draw_weights(c.random, layer);
  const std::int64_t batch = c.random.integer(1, 3), length = c.random.integer(1, 60);
  Tensor<float, 3> x = draw_activations(c.random, batch, length, made.width);
  View<const float, 3> residual;
  if (c.random.once_in(2)) residual = x;
  c.words << " B=" << batch << " L=" << length << (residual ? " residual" : "");
  layer.forward(c.engine, x, x, residual);
  c.digest.add(x);
}

AttentionSize draw_layer_size(DigestCase& c, const TransformerLayerOptions& made) {
  AttentionSize size;
  size.batch = c.random.integer(1, 3);
  size.query_length = size.key_length = c.random.integer(1, 50);
  size.query_heads = size.key_value_heads = made.heads;
  size.head_dim = size.value_dim = made.width / made.heads;
  return size;
}

void encoder_layer(DigestCase& c) {
  c.words << " TransformerEncoderLayer";
  const TransformerLayerOptions made = draw_transformer_layer(c.random, false, c.words);
  TransformerEncoderLayer layer(made);
  draw_weights(c.random, layer);
  AttentionSize size = draw_layer_size(c, made);
  AttentionChoice choice(c.random, size, AttentionChoice::Kind::all, c.words);
  const Tensor<float, 3> x = draw_activations(c.random, size.batch, size.query_length, made.width);
  Tensor<float, 3> y(x.shape()), outputs(x.shape());
  HeadAccess heads;
  if (c.random.once_in(4)) heads.outputs = outputs;
  c.words << size;
  layer.forward(c.engine, x, y, choice.options, heads);
  c.digest.add(y);
  c.digest.add(heads.outputs);
}

void decoder_layer(DigestCase& c) {
  c.words << " TransformerDecoderLayer";
  const TransformerLayerOptions made = draw_transformer_layer(c.random, false, c.words);
  TransformerDecoderLayer layer(made);
  draw_weights(c.random, layer);
  AttentionSize size = draw_layer_size(c, made);
  size.key_length = c.random.integer(1, 60);
  AttentionChoice choice(c.random, size, AttentionChoice::Kind::of_streams, c.words);
  const Tensor<float, 3> x = draw_activations(c.random, size.batch, size.query_length, made.width);
  const Tensor<float, 3> memory = draw_activations(c.random, size.batch, size.key_length, made.width);
  Tensor<float, 3> y(x.shape());
  c.words << size;
  layer.forward(c.engine, x, memory, y, {.causal = Causal::top_left}, choice.options);
  c.digest.add(y);
}

void encoder(DigestCase& c) {
  const EncoderOptions made = draw_encoder(c.random, false, c.words);
  Encoder layer(made);
  draw_weights(c.random, layer);
  const DigestTokens tokens(c.random, made, c.words);
  Tensor<float, 2> hidden({tokens.count(), made.width}), outputs(hidden.shape());
  Tensor<float, 3> averaged({1, tokens.count(), tokens.longest()});
  std::vector<LayerProbabilities> probabilities;
  std::vector<LayerHeads> heads;
  if (c.random.once_in(3)) {
    probabilities.push_back({c.random.integer(0, made.layers - 1), {}});
    probabilities[0].probabilities.averaged = averaged;
    probabilities[0].probabilities.own_keys = true;
  }
  if (c.random.once_in(3)) heads.push_back({c.random.integer(0, made.layers - 1), outputs, {}, {}});
  layer.forward(c.engine, tokens.input(), hidden, probabilities, heads);
  c.digest.add(hidden);
  c.digest.add(outputs);
  c.digest.add(averaged);
}

void normalisation_and_initial_weights(DigestCase& c) {
  const TransformerLayerOptions made = draw_transformer_layer(c.random, false, c.words);
  TransformerLayerOptions other = made;
  other.orthogonal = true;
  TransformerDecoderLayer layer(c.random.once_in(2) ? made : other);
  layer.initialize(c.random.next());
  for (const Parameter& parameter : layer.parameters()) c.digest.add(std::span<const float>(parameter.values));
  LayerNorm norm(made.width);
  draw_weights(c.random, norm);
  Tensor<float, 2> x = c.random.normal_tensor<2>({c.random.integer(1, 40), made.width});
  c.words << " initialize, LayerNorm";
  norm.forward(c.engine, x, x);
  c.digest.add(x);
}

}  // namespace layers_family

void digest_layers(DigestCase& c) {
  constexpr void (*kKinds[])(DigestCase&) = {
      layers_family::attention_layer, layers_family::encoder_layer, layers_family::attention_layer,
      layers_family::decoder_layer,   layers_family::encoder,       layers_family::attention_layer,
      layers_family::feed_forward,    layers_family::linear,        layers_family::normalisation_and_initial_weights};
  kKinds[c.number % 9](c);
}

}  // namespace headlight::test
