// How a published folder turns text into tokens: tokenizer_config.json, special_tokens_map.json, added_tokens.json,
// tokenizer.json and vocab.txt together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/models/tokenizer.h"
#include "models/model_folder.h"
#include "text/table_limit.h"
#include "text/token_list.h"

namespace headlight::models {

struct TokenizerFiles {
  text::TokenList vocabulary;
  text::TableLimit limit;  // for tables of it, once this has been returned
  TokenizerOptions options;
  std::string path;                        // the file of the vocabulary
  std::optional<double> model_max_length;  // as it is in tokenizer_config.json: 512, 1e30
  std::string unread_pairs{};              // why two texts are not read as one sequence, or ""
  // Whether a network is told which tokens are those of a second text; nothing where versions of Transformers disagree.
  std::optional<bool> types{};

  // Takes the vocabulary. Throws FileError as Tokenizer::read(), and where its tables are more than `limit` allows.
  [[nodiscard]] Tokenizer tokenizer() &&;
};

// What BERT's tokenizer makes of them in Transformers. `tokenizer_class` is that of config.json, where
// tokenizer_config.json has none; `whole_file` says whether some version takes all of tokenizer.json beside any class;
// `rows` are those of the table of embeddings. Appends keys that nobody knows. Throws FileError for another tokenizer's
// files, and where two files, or two versions of Transformers, would make another one of them.
[[nodiscard]] TokenizerFiles read_tokenizer_files(const ModelFolder& folder,
                                                  const std::optional<std::string>& tokenizer_class, bool whole_file,
                                                  std::int64_t rows, std::vector<std::string>& unknown);

// Whether `model_input_names` of a tokenizer_config.json has the types of tokens; nothing where that is missing.
[[nodiscard]] std::optional<bool> says_types(const files::JsonValue& tokenizer_config);

}  // namespace headlight::models
