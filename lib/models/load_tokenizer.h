// The tokenizer of a model without its network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/tokenizers/text_tokenizer.h"

namespace headlight::models {

struct LoadedTokenizer {
  std::unique_ptr<TextTokenizer> tokenizer;
  std::int64_t max_length = 0;            // of ModelOptions
  std::vector<std::string> unknown_keys;  // of the files that were read, as ModelOptions has them
};

// Of what load() reads, but no weights: they may be damaged or missing. Throws FileError.
[[nodiscard]] LoadedTokenizer load_tokenizer(const std::string& path);

}  // namespace headlight::models
