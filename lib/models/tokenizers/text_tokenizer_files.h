// A tokenizer.json of another kind than BERT's, and what tokenizer_config.json says beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "models/folder_keys.h"
#include "models/model_folder.h"

namespace headlight::models {

// Whether a folder's tokenizer is one that read_tokenizer_files() reads, or refuses: by the tokenizer_class of
// tokenizer_config.json, where that has none that of config.json, or the family's own; and where a class says nothing
// of its tokenizer, by the parts of tokenizer.json. Throws FileError.
[[nodiscard]] bool has_bert_tokenizer(const ModelFolder& folder, const std::optional<std::string>& tokenizer_class,
                                      std::string_view of_family);

struct TextTokenizerFiles {
  text::Tokenizer tokenizer;
  std::string path;
  std::optional<double> model_max_length{};  // as TokenizerFiles::model_max_length
  std::optional<bool> types{};               // as TokenizerFiles::types
  std::vector<std::int64_t> special{};       // ids of the tokens that Transformers calls special, in ascending order
};

// Names of a tokenizer_class, where tokenizer_config.json has none.
struct TokenizerClassNames {
  std::optional<std::string> of_config;  // config.json's
  std::string_view of_family;
  bool takes_whole_file = false;  // whatever its class, the family takes all of tokenizer.json
};

// Throws FileError where tokenizer_config.json, special_tokens_map.json or the tokenizer_class say otherwise than
// tokenizer.json, and where that has a token for which the table of `rows` embeddings has no row. Appends keys that
// nobody knows.
[[nodiscard]] TextTokenizerFiles read_text_tokenizer_files(const ModelFolder& folder, const TokenizerClassNames& names,
                                                           std::int64_t rows, std::vector<std::string>& unknown);

// What becomes of keys of tokenizer_config.json there, other than beside a tokenizer of BERT's.
[[nodiscard]] std::span<const FolderKey> text_tokenizer_keys() noexcept;

}  // namespace headlight::models
