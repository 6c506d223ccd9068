// What the files of a folder say of a tokenizer other than BERT's, against what its tokenizer_class makes of them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "files/json_value.h"
#include "models/tokenizers/listed_tokens.h"
#include "models/tokenizers/tokenizer_classes.h"
#include "text/pipeline.h"

namespace headlight::models {

struct TokenizerSources {
  files::JsonValue tokenizer;                               // tokenizer.json
  std::optional<files::JsonValue> config{};                 // tokenizer_config.json
  std::optional<files::JsonValue> special{};                // special_tokens_map.json, where Transformers looks at it
  const TokenizerClass* tokenizer_class = nullptr;          // null for one that takes all of tokenizer.json
  std::map<std::string, ListedToken, std::less<>> added{};  // added_tokens of tokenizer.json, by content
};

// The tokens that have a name or are listed, all of which Transformers calls special.
using SpecialNames = std::set<std::string, std::less<>>;
[[nodiscard]] SpecialNames special_names(const TokenizerSources& sources);

// Each throws FileError where they disagree. Of any class: whether a space is put before a text.
void check_prefix_space(const TokenizerSources& sources);
// Of a class that makes its tokenizer itself: the tokens that have a name or are listed, and the normalizer.
void check_files_of_class(const TokenizerSources& sources);
// And the tokens around texts, and the one for what is unknown, in the tokenizer that was made.
void check_tokenizer_of_class(const TokenizerSources& sources, const text::Pipeline& tokenizer);

}  // namespace headlight::models
