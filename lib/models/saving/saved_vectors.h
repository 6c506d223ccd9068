// The files of sentence-transformers' modules and prompts.
#pragma once

#include <string>

#include "headlight/models/text_encoder.h"
#include "models/saving/saved_tokenizer.h"

namespace headlight::models {

// Adds modules.json, the configurations of modules and config_sentence_transformers.json, where vectors are more than
// the mean or there is a prompt.
void add_vector_files(const ModelOptions& options, SavedFiles& files);

// The weights of the layers behind the pooling. Throws FileError.
void write_layer_weights(const ModelOptions& options, const std::string& folder);

}  // namespace headlight::models
