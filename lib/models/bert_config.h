// config.json: what a published BERT folder says of its network.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/folder_keys.h"
#include "models/model_folder.h"

namespace headlight::models {

struct BertConfig {
  EncoderOptions encoder;
  std::optional<std::string> tokenizer_class;
};

// Those of config.json that are BERT's, beside those of every family.
[[nodiscard]] std::span<const FolderKey> bert_keys() noexcept;

// Appends keys that nobody knows. Throws FileError.
[[nodiscard]] BertConfig read_bert_config(const files::JsonValue& config, std::vector<std::string>& unknown);

}  // namespace headlight::models
