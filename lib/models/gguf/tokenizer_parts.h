// What a GGUF file's tokenizer is made of beside its lists, as a tokenizer.json says it.
#pragma once

#include <string>
#include <string_view>

#include "models/gguf/token_lists.h"
#include "models/gguf/tokens.h"
#include "models/json_text.h"

namespace headlight::models {

struct GgufTokenizerParts {
  // As JSON; empty where there is none.
  std::string normalizer{}, pre_tokenizer{}, post_processor{}, decoder{};
  JsonObject model;      // all but its lists
  GgufTokenLists lists;  // of `tokens`

  // The members of a tokenizer.json that the strings are, of which a decoder is always one.
  [[nodiscard]] JsonObject beside_model() const;
  // A tokenizer.json of all, without lists.
  [[nodiscard]] std::string text() const;
};

// By tokenizer.ggml.model, which is not "bert". A normalizer by precompiled_charsmap is not among the parts, since it
// may be as long as a list.
[[nodiscard]] GgufTokenizerParts read_gguf_tokenizer_parts(const GgufTokens& tokens, std::string_view model);

}  // namespace headlight::models
