// config.json: what a published BERT folder says of its network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/model_folder.h"

namespace headlight::models {

struct BertConfig {
  EncoderOptions encoder;
  std::optional<std::string> tokenizer_class;
};

// Appends keys that nobody knows. Throws FileError.
[[nodiscard]] BertConfig read_bert_config(const ModelFolder& folder, std::vector<std::string>& unknown);

}  // namespace headlight::models
