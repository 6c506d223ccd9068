// tokenizer.json of a BERT tokenizer, as Hugging Face's tokenizers write it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/model_folder.h"
#include "models/tokenizers/listed_tokens.h"
#include "text/table_limit.h"
#include "text/token_list.h"

namespace headlight::models {

struct TokenizerJson {
  std::string path;
  text::TokenList vocabulary;  // by id; "" for an id that no token has
  text::TableLimit limit;      // for tables of it, while the document is there
  std::optional<files::JsonValue> document{};
  std::size_t document_memory = 0;
  // What it says of clean-up, accents, case, ideographs, prefix, longest word, [UNK], [CLS] and [SEP].
  TokenizerOptions options;
  bool has_normalizer = true;
  bool has_gaps = false;     // whether the vocabulary leaves out ids
  std::string unread_pairs;  // why two texts are not read as one sequence, or ""
  std::vector<ListedToken> added;
};

// Throws FileError for whatever else than WordPiece between BertNormalizer, BertPreTokenizer and one token before and
// one behind the text.
[[nodiscard]] TokenizerJson read_tokenizer_json(const ModelFolder& folder);

}  // namespace headlight::models
