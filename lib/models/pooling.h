// How a published folder makes one vector of a text's hidden states.
#pragma once

#include <string>

#include "models/model_folder.h"

namespace headlight::models {

// What the folder asks for beside the mean of all tokens: the file, the key, and what was expected of it. Empty where
// it asks for the mean, or says nothing. Files as sentence-transformers writes them: 1_Pooling/config.json and, where a
// layer follows, 2_Dense/config.json. Throws FileError.
[[nodiscard]] std::string unread_pooling(const ModelFolder& folder);

}  // namespace headlight::models
