// What a GGUF file says of a network: its family, its sizes and its tensors.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/layers/network.h"
#include "headlight/models/gguf.h"
#include "headlight/models/text_encoder.h"
#include "headlight/parameters.h"
#include "models/families/family.h"
#include "models/gguf/metadata.h"
#include "models/json_text.h"
#include "models/saving/converted_weights.h"

namespace headlight::models {

struct GgufNetwork {
  std::string_view model_type;  // that of config.json for the same network
  FamilyConfig config{};
  // Of its tensors.
  std::span<const TensorName> names{};
  // The config.json of such a folder, and what the converter changed in its tensors.
  JsonObject written;
  Converted converted{};
  std::string refusal{};  // why no folder holds this network, as a sentence; empty: one does
};

// By general.architecture. Throws FileError naming the key for an architecture that is not built and for what a key
// asks for that is not.
[[nodiscard]] GgufNetwork read_gguf_network(const GgufMetadata& metadata, GgufFile& file);

// Views of the file's tensors, of every one of those parameters, as find_family_weights() finds those of a folder.
[[nodiscard]] Weights find_gguf_weights(GgufFile& file, const GgufNetwork& network,
                                        std::span<const ParameterShape> parameters);

// The pooling, and the layers behind it into options whose encoder has its sizes.
void read_gguf_pooling(const GgufMetadata& metadata, ModelOptions& into);
void read_gguf_vector_layers(GgufFile& file, ModelOptions& into);

}  // namespace headlight::models
