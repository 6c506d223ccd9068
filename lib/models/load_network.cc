#include "models/load_network.h"

#include <stdexcept>
#include <utility>

#include "headlight/models/errors.h"
#include "models/families/encoder_form.h"

namespace headlight::models {

EncoderOptions sizes_of(const FamilyConfig& config) {
  const NetworkSpec& network = config.network;
  EncoderOptions sizes;
  sizes.vocabulary = network.embedding.vocabulary;
  sizes.max_positions = config.longest;
  sizes.token_types = network.embedding.token_types;
  sizes.width = network.width;
  sizes.layers = static_cast<std::int64_t>(network.blocks.size());
  if (network.blocks.empty()) return sizes;
  sizes.heads = network.blocks.front().attention.heads;
  sizes.feed_forward_width = network.blocks.front().feed_forward.hidden_width;
  sizes.activation = network.blocks.front().feed_forward.activation;
  return sizes;
}

std::vector<ParameterShape> parameters_of(const NetworkSpec& spec, const std::string& path) {
  try {
    return Network::parameter_shapes(spec);
  } catch (const std::invalid_argument& error) {
    throw FileError(path, std::string("says of its network what cannot be: ") + error.what());
  }
}

headlight::Encoder load_encoder(const EncoderOptions& options, const EncoderWeights& found, NumberType precision) {
  headlight::Encoder network(options);
  network.set_precision(precision);
  network.load(found.weights);
  return network;
}

std::unique_ptr<TextNetwork> load_network(const FamilyConfig& config, const Weights& found, NumberType precision) {
  if (const auto encoder = as_encoder(config.network)) {
    return make_text_network(load_encoder(*encoder, as_encoder_weights(found, encoder->layers), precision),
                             config.positions);
  }
  Network network(config.network);
  network.set_precision(precision);
  network.load(found);
  return make_text_network(std::move(network), config.positions);
}

}  // namespace headlight::models
