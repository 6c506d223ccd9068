// config.json and its neighbours: what a published BERT folder says of itself.
#pragma once

#include <string>

#include "headlight/models/encoder.h"

namespace headlight::models {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kVocabularyFile = "vocab.txt";
inline constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr const char* kSentenceConfigFile = "sentence_bert_config.json";

// `folder` + '/' + `file`, without doubling the slash.
[[nodiscard]] std::string path_in(const std::string& folder, const char* file);

// Reads config.json and, where they are there, tokenizer_config.json and sentence_bert_config.json. Throws FileError.
[[nodiscard]] ModelOptions read_bert_config(const std::string& folder);

// Writes the same three. Throws FileError.
void write_bert_config(const std::string& folder, const ModelOptions& options);

}  // namespace headlight::models
