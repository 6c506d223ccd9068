// A network out of its configuration and the tensors of a file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/layers/network.h"
#include "headlight/number_type.h"
#include "headlight/parameters.h"
#include "models/bert_weights.h"
#include "models/families/family.h"
#include "models/text_network.h"

namespace headlight::models {

// What options show of a network that is no Encoder.
[[nodiscard]] EncoderOptions sizes_of(const FamilyConfig& config);

// Network::parameter_shapes(), as a FileError of that file for what a family lets pass and a network does not.
[[nodiscard]] std::vector<ParameterShape> parameters_of(const NetworkSpec& spec, const std::string& path);

[[nodiscard]] headlight::Encoder load_encoder(const EncoderOptions& options, const EncoderWeights& found,
                                              NumberType precision);

// Of tensors by the names of headlight::Network: an Encoder where the network can be one.
[[nodiscard]] std::unique_ptr<TextNetwork> load_network(const FamilyConfig& config, const Weights& found,
                                                        NumberType precision);

}  // namespace headlight::models
