// Texts to tokens and back as a model does it, whatever is there of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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

// `path`: what models::load() reads, of which no weights are read; or a tokenizer.json, or a folder with that and no
// model. Where the other files are none that load() takes, such as those of a model that generates text, its
// tokenizer.json or the tokenizer in its GGUF file, with a warning. Throws models::FileError.
[[nodiscard]] ModelTokens tokens_of(const std::string& path);

}  // namespace headlight::program
