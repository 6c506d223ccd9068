// What a GGUF file's tokenizer is made of beside its lists, as a tokenizer.json says it.
#pragma once

#include <string>
#include <string_view>

#include "models/gguf_token_lists.h"
#include "models/gguf_tokens.h"
#include "models/json_text.h"

namespace headlight::models {

struct GgufTokenizerParts {
  // As JSON; empty where there is none.
  std::string normalizer{}, pre_tokenizer{}, post_processor{}, decoder{};
  JsonObject model;      // all but its lists
  GgufTokenLists lists;  // of `tokens`

  // A tokenizer.json of them, without lists, or whose model and added_tokens are those members.
  [[nodiscard]] std::string text() const { return text(model.document(), ""); }
  [[nodiscard]] std::string text(std::string_view model_text, std::string_view added_tokens) const;
};

// By tokenizer.ggml.model, which is not "bert". A normalizer by precompiled_charsmap is not among the parts, since it
// may be as long as a list.
[[nodiscard]] GgufTokenizerParts read_gguf_tokenizer_parts(const GgufTokens& tokens, std::string_view model);

}  // namespace headlight::models
