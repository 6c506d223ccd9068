// The files of a tokenizer, as texts.
#pragma once

#include <map>
#include <span>
#include <string>

#include "headlight/models/text_encoder.h"

namespace headlight::models {

// By name within the folder, "1_Pooling/config.json".
using SavedFiles = std::map<std::string, std::string, std::less<>>;

// Adds tokenizer_config.json and, where vocab.txt and it do not say all, tokenizer.json. Throws std::invalid_argument
// for a tokenizer that neither can say.
void add_tokenizer_files(const ModelOptions& options, std::span<const std::string> vocabulary, SavedFiles& files);

}  // namespace headlight::models
