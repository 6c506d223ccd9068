// config.json, written.
#pragma once

#include <string>

#include "files/json_value.h"
#include "headlight/layers/encoder.h"

namespace headlight::models {

// That of a BERT model. Throws std::invalid_argument for an activation that no file can name.
[[nodiscard]] std::string config_text(const EncoderOptions& encoder);

// One that was read, but for the type of its weights (dtype, torch_dtype): the file of the weights says it, and it may
// be written in another.
[[nodiscard]] std::string config_text(const files::JsonValue& config);

}  // namespace headlight::models
