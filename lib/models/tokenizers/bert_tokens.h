// The tokens that the files of BERT's tokenizer name, list and add beside its vocabulary.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "files/json_value.h"
#include "models/tokenizers/listed_tokens.h"
#include "models/tokenizers/tokenizer_json.h"

namespace headlight::models {

struct BertSources {
  std::optional<files::JsonValue> config{};   // tokenizer_config.json
  std::optional<files::JsonValue> special{};  // special_tokens_map.json, where Transformers looks at it
  std::optional<files::JsonValue> added{};    // added_tokens.json, where Transformers looks at it
  std::optional<TokenizerJson> json{};        // tokenizer.json
  bool takes_file = false;                    // whether the class takes all of tokenizer.json
  bool family_takes_file = false;             // whether some version of Transformers does beside any class
};

// A token that has a name: special_tokens_map.json comes first, even with null.
[[nodiscard]] std::optional<ListedToken> named_of(const BertSources& sources, std::string_view key);
// The name of a token that no file names; none for null, which takes [PAD] and [MASK] away.
[[nodiscard]] std::string default_of(const BertSources& sources, std::string_view key);

// All tokens that Transformers adds, in its order. Throws FileError where versions of it disagree.
[[nodiscard]] ListedTokens added_tokens(const BertSources& sources);

}  // namespace headlight::models
