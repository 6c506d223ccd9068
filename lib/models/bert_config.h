// config.json and its neighbours: what a published BERT folder says of itself.
#pragma once

#include <string>

#include "headlight/models/text_encoder.h"
#include "models/model_folder.h"

namespace headlight::models {

// Reads config.json and, where they are there, tokenizer_config.json and sentence_bert_config.json. Throws FileError.
[[nodiscard]] ModelOptions read_bert_config(const ModelFolder& folder);

// Writes the same three. Throws FileError.
void write_bert_config(const std::string& folder, const ModelOptions& options);

}  // namespace headlight::models
