#include "headlight/layers/encoder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>

#include "headlight/normalization.h"
#include "headlight/out_of_memory.h"
#include "layers/embedding_table.h"
#include "layers/initializer.h"
#include "layers/layer_names.h"
#include "layers/layer_outputs.h"
#include "layers/parameter_list.h"
#include "layers/sizes.h"
#include "layers/transformer_steps.h"
#include "runtime/parallel.h"

namespace headlight {

namespace {

const EncoderOptions& checked(const EncoderOptions& options) {
  layers::at_least(1, layers::kEncoderName, "vocabulary", options.vocabulary);
  layers::at_least(1, layers::kEncoderName, "max_positions", options.max_positions);
  layers::at_least(0, layers::kEncoderName, "token_types", options.token_types);
  layers::at_least(1, layers::kEncoderName, "width", options.width);
  layers::at_least(0, layers::kEncoderName, "layers", options.layers);
  layers::probability(layers::kEncoderName, "dropout", options.dropout);
  layers::checked_norm(layers::kEncoderName, options.norm);
  return options;
}

TransformerLayerOptions layer_options(const EncoderOptions& options) {
  return {.width = options.width,
          .heads = options.heads,
          .feed_forward_width = options.feed_forward_width,
          .norm = options.norm,
          .activation = options.activation,
          .layer_norm_epsilon = options.layer_norm_epsilon,
          .dropout = options.dropout,
          .merge = options.merge,
          .orthogonal = options.orthogonal};
}

// Room for so many layers, each of which will ask for its own.
void reserve_layers(std::vector<TransformerEncoderLayer>& layers, std::int64_t count) {
  // Without a string, for which there may be no memory either.
  const auto refuse = [count](std::size_t bytes) {
    std::array<char, 64> words{};
    const int length =
        std::snprintf(words.data(), words.size(), "Encoder of %lld layers", static_cast<long long>(count));
    throw OutOfMemory({words.data(), static_cast<std::size_t>(length)}, bytes);
  };
  const auto wanted = static_cast<std::size_t>(count);
  if (wanted > layers.max_size()) refuse(SIZE_MAX);
  try {
    layers.reserve(wanted);
  } catch (const std::bad_alloc&) {
    refuse(wanted * sizeof(TransformerEncoderLayer));
  }
}

}  // namespace

Encoder::Encoder(const EncoderOptions& options)
    : options_(checked(options)),
      word_embeddings_(
          layers::matrix_shape(layers::kEncoderName, "word_embeddings", options.vocabulary, options.width)),
      position_embeddings_(
          layers::matrix_shape(layers::kEncoderName, "position_embeddings", options.max_positions, options.width)),
      norm_(options.width, options.layer_norm_epsilon) {
  // Whoever writes the options into a file wants them without defaults.
  if (options_.feed_forward_width == 0) options_.feed_forward_width = 4 * options_.width;
  if (options.token_types > 0)
    token_type_embeddings_ = WeightMatrix(
        layers::matrix_shape(layers::kEncoderName, "token_type_embeddings", options.token_types, options.width));
  reserve_layers(layers_, options.layers);
  for (std::int64_t layer = 0; layer < options.layers; ++layer) layers_.emplace_back(layer_options(options));
}

void Encoder::embed_tokens(Engine& engine, const EncoderInput& input, View<float, 2> hidden) const {
  const std::size_t count = options_.token_types > 0 ? 3 : 2;
  const std::array<Embedding, 3> tables = {layers::embedding_of(word_embeddings_, input.ids),
                                           layers::embedding_of(position_embeddings_, input.positions),
                                           layers::embedding_of(token_type_embeddings_, input.token_types)};
  embed(engine, std::span(tables).first(count), hidden);
}

// In another form than float32, in memory that was lent.
bool Encoder::has_stored_tables() const noexcept {
  return layers::is_stored_table(word_embeddings_) || layers::is_stored_table(position_embeddings_) ||
         layers::is_stored_table(token_type_embeddings_);
}

void Encoder::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
                      std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) const {
  layers::check_token_offsets(layers::kEncoderName, input, static_cast<std::int64_t>(input.ids.size()));
  check(input, hidden, probabilities, heads);
  embed_tokens(engine, input, hidden);
  if (options_.norm == Norm::post) norm_.forward(engine, hidden, hidden);
  const View<float, 3> x = layers::one_sample(hidden);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    AttentionOptions options;
    options.query_offsets = input.offsets;
    for (const LayerProbabilities& wanted : probabilities) {
      if (wanted.layer == static_cast<std::int64_t>(layer)) options.probabilities = wanted.probabilities;
    }
    HeadAccess access;
    for (const LayerHeads& wanted : heads) {
      if (wanted.layer != static_cast<std::int64_t>(layer)) continue;
      access.silenced = wanted.silenced;
      if (wanted.outputs) access.outputs = layers::one_sample(wanted.outputs);
      if (wanted.scaled_outputs) access.scaled_outputs = layers::one_sample(wanted.scaled_outputs);
    }
    layers_[layer].forward(engine, x, x, options, access);
    runtime::throw_if_stopped(engine);  // nor do further texts begin
  }
  if (options_.norm != Norm::pre) return;
  norm_.forward(engine, hidden, hidden);
  runtime::throw_if_stopped(engine);
}

std::size_t Encoder::workspace_bytes(const Engine& engine, std::int64_t tokens) const {
  std::size_t most = has_stored_tables() ? rows_workspace_bytes(engine, options_.width) : 0;
  for (const TransformerEncoderLayer& layer : layers_) most = std::max(most, layer.workspace_bytes(engine, 1, tokens));
  return most;
}

void Encoder::reserve(Engine& engine, std::int64_t tokens) const {
  if (has_stored_tables()) reserve_rows(engine, options_.width);
  for (const TransformerEncoderLayer& layer : layers_) layer.reserve(engine, 1, tokens);
}

void Encoder::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                const Weights* named) {
  layers::append(list, prefix + "word_embeddings.weight", word_embeddings_, word_embeddings_.all());
  layers::append(list, prefix + "position_embeddings.weight", position_embeddings_, position_embeddings_.all());
  layers::append(list, prefix + "token_type_embeddings.weight", token_type_embeddings_, token_type_embeddings_.all());
  norm_.append_parameters(prefix + "norm.", list, named);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer].append_parameters(prefix + "layers." + std::to_string(layer) + ".", list, named);
  }
}

void Encoder::initialize_from(layers::Initializer& initializer) {
  // Standard deviation 0.02, as BERT's and GPT-2's tables begin; a uniform draw of bound b has b / √3.
  constexpr float kBound = 0.02f * 1.7320508f;
  initializer.uniform(layers::values_of(word_embeddings_.own()), kBound);
  initializer.uniform(layers::values_of(position_embeddings_.own()), kBound);
  initializer.uniform(layers::values_of(token_type_embeddings_.own()), kBound);
  norm_.initialize_from(initializer);
  for (TransformerEncoderLayer& layer : layers_) layer.initialize_from(initializer);
}

void Encoder::set_open(bool open) noexcept {
  for (TransformerEncoderLayer& layer : layers_) layer.set_open(open);
}

void Encoder::make_gradients(bool wanted) {
  word_embeddings_.make_gradient(wanted);
  position_embeddings_.make_gradient(wanted);
  token_type_embeddings_.make_gradient(wanted);
  norm_.make_gradients(wanted);
  for (TransformerEncoderLayer& layer : layers_) layer.make_gradients(wanted);
}

}  // namespace headlight
