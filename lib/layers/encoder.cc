#include "headlight/layers/encoder.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/encoder_state.h"
#include "layers/layer_names.h"
#include "layers/layer_outputs.h"
#include "layers/parameter_list.h"
#include "layers/sizes.h"
#include "layers/transformer_check.h"

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
  options.feed_forward_width = layers::checked(kName, options.layer_options()).feed_forward_width;
  return options;
}

}  // namespace

// What it takes for lists, beside the parameters, is little.
Encoder::Encoder(const EncoderOptions& options) : options_(checked(options)) {
  state_ = layers::named_lack(layers::kEncoderName, "list of operations", sizeof(State),
                              [&] { return std::make_unique<State>(options_); });
}

Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

void Encoder::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
                      std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) const {
  layers::check_token_offsets(layers::kEncoderName, input, static_cast<std::int64_t>(input.ids.size()));
  check(input, hidden, probabilities, heads);
  state_->graph.forward(engine, {.tokens = input, .probabilities = probabilities, .heads = heads},
                        layers::one_sample(hidden));
}

std::size_t Encoder::workspace_bytes(const Engine& engine, std::int64_t tokens) const {
  static_cast<void>(layers::at_least(0, layers::kEncoderName, "tokens", tokens));
  return state_->graph.workspace_bytes(engine, {1, tokens});
}

void Encoder::reserve(Engine& engine, std::int64_t tokens) const {
  static_cast<void>(layers::at_least(0, layers::kEncoderName, "tokens", tokens));
  state_->graph.reserve(engine, {1, tokens});
}

void Encoder::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                const Weights* named) {
  state_->append_parameters(prefix, list, named);
}

void Encoder::initialize_from(layers::Initializer& initializer) {
  state_->graph.parameters().initialize_from(initializer);
}

void Encoder::set_open(bool open) noexcept { state_->graph.parameters().set_open(open); }

void Encoder::make_gradients(bool wanted) { state_->graph.parameters().make_gradients(wanted); }

}  // namespace headlight
