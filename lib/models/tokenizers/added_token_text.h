// Added tokens as the files of a tokenizer list them.
#pragma once

#include "models/json_text.h"
#include "text/tokenizer_lists.h"

namespace headlight::models {

// All but the id, which is a member in `added_tokens`, and a key in `added_tokens_decoder`.
inline void add_properties(const text::AddedEntry& token, JsonObject& into) {
  into.add("content", token.content);
  into.add("single_word", token.single_word);
  into.add("lstrip", token.lstrip);
  into.add("rstrip", token.rstrip);
  into.add("normalized", token.normalized);
  into.add("special", token.special);
}

}  // namespace headlight::models
