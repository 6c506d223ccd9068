#include "headlight/layers/encoder.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/checked_options.h"
#include "layers/encoder_state.h"
#include "layers/layer_names.h"
#include "layers/layer_outputs.h"
#include "layers/network/parts.h"
#include "layers/parameter_list.h"
#include "layers/sizes.h"
#include "layers/transformer_steps.h"

namespace headlight {

namespace {

// As its tables and layers refuse them, every size set: whoever writes options into a file wants them without defaults.
EncoderOptions checked(EncoderOptions options) {
  constexpr std::string_view kName = layers::kEncoderName;
  layers::at_least(1, kName, "vocabulary", options.vocabulary);
  layers::at_least(1, kName, "max_positions", options.max_positions);
  layers::at_least(0, kName, "token_types", options.token_types);
  layers::at_least(1, kName, "width", options.width);
  layers::at_least(0, kName, "layers", options.layers);
  layers::probability(kName, "dropout", options.dropout);
  layers::checked_norm(kName, options.norm);
  layers::matrix_shape(kName, "word_embeddings", options.vocabulary, options.width);
  layers::matrix_shape(kName, "position_embeddings", options.max_positions, options.width);
  layers::matrix_shape(kName, "token_type_embeddings", options.token_types, options.width);
  if (options.layers == 0) {
    options.feed_forward_width = layers::given_or(options.feed_forward_width, 4 * options.width);
    return options;
  }
  const TransformerLayerOptions layer = options.layer_options();
  static_cast<void>(layers::checked(layers::attention_options(layer)));
  options.feed_forward_width = layers::checked(layers::feed_forward_options(layer)).hidden_width;
  layers::matrix_shape("Linear", "weight", options.feed_forward_width, options.width);
  return options;
}

}  // namespace

// What it takes for lists, beside the parameters, is little.
Encoder::Encoder(const EncoderOptions& options) : options_(checked(options)) {
  state_ = layers::named_lack(layers::kEncoderName, "list of operations", sizeof(State), [&] {
    auto state = std::make_unique<State>();
    static_cast<void>(layers::add_network(state->graph, layers::specification_of(options_)));
    state->parameters = layers::renamed(state->graph.parameters());
    return state;
  });
}

Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

void Encoder::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
                      std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) const {
  layers::check_token_offsets(layers::kEncoderName, input, static_cast<std::int64_t>(input.ids.size()));
  check(input, hidden, probabilities, heads);
  state_->graph.forward(engine, input, hidden, {probabilities, heads});
}

std::size_t Encoder::workspace_bytes(const Engine& engine, std::int64_t tokens) const {
  static_cast<void>(layers::at_least(0, layers::kEncoderName, "tokens", tokens));
  return state_->graph.workspace_bytes(engine, tokens);
}

void Encoder::reserve(Engine& engine, std::int64_t tokens) const {
  static_cast<void>(layers::at_least(0, layers::kEncoderName, "tokens", tokens));
  state_->graph.reserve(engine, tokens);
}

namespace {

// What MultiHeadAttention::append_parameters() does with those names: there is one parameter of query, key and value,
// or one of each.
void append_projection(const std::string& prefix, WeightMatrix& matrix, std::vector<layers::ParameterPlace>& list,
                       const Weights* named) {
  for (const char* extra : {"bias_k", "bias_v"}) {
    if (named != nullptr && named->contains(prefix + extra)) {
      ops::fail(layers::kMultiHeadAttentionName, "weight ", prefix, extra,
                " is given, expected none: an extra learned key is not supported");
    }
  }
  if (named == nullptr || !named->contains(prefix + "q_proj_weight")) {
    return layers::append(list, prefix + "in_proj_weight", matrix, matrix.all());
  }
  const std::int64_t rows = matrix.rows() / 3;
  std::int64_t first = 0;
  for (const char* part : {"q_proj_weight", "k_proj_weight", "v_proj_weight"}) {
    layers::append(list, prefix + part, matrix, {first, rows});
    first += rows;
  }
}

}  // namespace

void Encoder::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                const Weights* named) {
  constexpr std::string_view kProjection = "in_proj_weight";
  for (const layers::RenamedParameter& parameter : state_->parameters) {
    const std::string name = prefix + parameter.name;
    if (name.ends_with(kProjection)) {
      append_projection(name.substr(0, name.size() - kProjection.size()), parameter.matrix->matrix, list, named);
    } else if (parameter.matrix != nullptr) {
      layers::append(list, name, parameter.matrix->matrix, parameter.matrix->matrix.all());
    } else {
      layers::append(list, name, parameter.vector->values, parameter.vector->gradient);
    }
  }
}

void Encoder::initialize_from(layers::Initializer& initializer) {
  state_->graph.parameters().initialize_from(initializer);
}

void Encoder::set_open(bool open) noexcept { state_->graph.parameters().set_open(open); }

void Encoder::make_gradients(bool wanted) { state_->graph.parameters().make_gradients(wanted); }

}  // namespace headlight
