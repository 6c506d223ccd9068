// Texts to tokens and back as a model does it, whatever is there of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/headlight/support/model_arguments.h"

namespace headlight::program {

struct ModelTokens {
  // Those of a model cut at its max_length. Throws std::invalid_argument for what is not UTF-8.
  std::function<std::vector<std::int64_t>(const std::string& text)> encode;
  // Of ids that tokens have.
  std::function<std::string(const std::vector<std::int64_t>& ids)> decode;
  // Nothing for an id that no token has.
  std::function<std::optional<std::string>(std::int64_t id)> token;
  std::int64_t size = 0;  // one more than the largest id
};

// `arguments.model`: what models::load() reads; or a tokenizer.json, or a folder with that and no model. Of a model
// that load() refuses, such as one that generates text, its tokenizer.json or the tokenizer in its GGUF file, with a
// warning. Throws models::FileError.
[[nodiscard]] ModelTokens tokens_of(const ModelArguments& arguments);

}  // namespace headlight::program
