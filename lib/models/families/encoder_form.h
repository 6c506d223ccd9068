// Networks that BERT's layers can be: a headlight::Encoder trains, and shows what its heads look at.
#pragma once

#include <optional>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/layers/network_spec.h"
#include "headlight/parameters.h"
#include "models/bert_weights.h"

namespace headlight::models {

// The same network as options of an Encoder; nothing where it is another.
[[nodiscard]] std::optional<EncoderOptions> as_encoder(const NetworkSpec& spec);

// Weights by the names of headlight::Network, by those of that Encoder; views of them, but for joined biases.
[[nodiscard]] EncoderWeights as_encoder_weights(const Weights& network, std::int64_t blocks);
// The other way: views into the encoder, in the formats that its weights are in.
[[nodiscard]] Weights as_network_weights(const headlight::Encoder& encoder);

}  // namespace headlight::models
