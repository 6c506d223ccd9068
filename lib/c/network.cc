// The encoder network, from token ids to hidden states.
#include "headlight/c/network.h"

#include <array>

#include "c/handles.h"
#include "headlight/layers/encoder.h"

namespace headlight::c {
namespace {

constexpr const char* kName = "encoder_network";

// Layers whose probabilities one call may ask for: without the heap, since a repeated call allocates nothing.
constexpr std::size_t kMostLayers = 64;

EncoderOptions encoder_options(const headlight_encoder_network_options* given) {
  const Fields fields(kName, "options", given, HEADLIGHT_C_FIELDS(headlight_encoder_network_options));
  EncoderOptions options;
  options.vocabulary = fields->vocabulary;
  options.max_positions = fields->max_positions;
  options.token_types = fields->token_types;
  options.width = fields->width;
  options.heads = fields->heads;
  options.feed_forward_width = fields->feed_forward_width;
  options.layers = fields->layers;
  options.norm = enumerated<Norm>(kName, "norm", fields->norm, HEADLIGHT_NORM_POST, HEADLIGHT_NORM_PRE);
  options.activation = activation_of(kName, fields->activation, options.activation);
  if (fields->layer_norm_epsilon != nullptr) options.layer_norm_epsilon = *fields->layer_norm_epsilon;
  options.merge = merge_of(kName, fields->merge);
  return options;
}

EncoderInput encoder_input(const headlight_encoder_network_input* given) {
  const Fields fields(kName, "input", &required(kName, "input", given));
  return {.ids = indices(kName, "ids", fields->ids),
          .positions = indices(kName, "positions", fields->positions),
          .token_types = indices(kName, "token_types", fields->token_types),
          .offsets = indices(kName, "offsets", fields->offsets)};
}

LayerProbabilities layer_probabilities(const headlight_layer_probabilities& given) {
  return {.layer = given.layer,
          .probabilities = {.per_head = optional_view<float, 4>(kName, "probabilities", given.probabilities),
                            .averaged = optional_view<float, 3>(kName, "mean_probabilities", given.mean_probabilities),
                            .rows = indices(kName, "rows", given.rows)}};
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_encoder_network_create(const headlight_encoder_network_options* options,
                                                  headlight_layer** network, headlight_error* error) {
  return create(kName, network, error, [&] { return make_layer<Encoder>(encoder_options(options)); });
}

headlight_status headlight_encoder_network_forward(const headlight_layer* network, headlight_engine* engine,
                                                   const headlight_encoder_network_input* input,
                                                   const headlight_tensor* hidden,
                                                   const headlight_layer_probabilities* probabilities, size_t count,
                                                   headlight_error* error) {
  return call(error, [&] {
    std::array<LayerProbabilities, kMostLayers> wanted{};
    if (count > kMostLayers) {
      refuse(kName, "probabilities of " + std::to_string(count) + " layers are asked for, expected at most " +
                        std::to_string(kMostLayers));
    }
    for (std::size_t number = 0; number < count; ++number) {
      wanted[number] = layer_probabilities((&required(kName, "probabilities", probabilities))[number]);
    }
    as<Encoder>(kName, network)
        .forward(engine_of(kName, engine), encoder_input(input), view<float, 2>(kName, "hidden", hidden),
                 {wanted.data(), count});
  });
}

headlight_status headlight_encoder_network_workspace_bytes(const headlight_layer* network,
                                                           const headlight_engine* engine, int64_t tokens,
                                                           size_t* bytes, headlight_error* error) {
  return call(error, [&] {
    required(kName, "bytes", bytes) = as<Encoder>(kName, network).workspace_bytes(engine_of(kName, engine), tokens);
  });
}

headlight_status headlight_encoder_network_reserve(const headlight_layer* network, headlight_engine* engine,
                                                   int64_t tokens, headlight_error* error) {
  return call(error, [&] { as<Encoder>(kName, network).reserve(engine_of(kName, engine), tokens); });
}
