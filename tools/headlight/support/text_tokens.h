// A text as tokens, as many as a model takes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headlight/models/text_encoder.h"

namespace headlight::program {

struct TextTokens {
  std::vector<std::int64_t> ids;  // [CLS], tokens of the text, [SEP]
  bool cut;                       // there would have been more
};

inline TextTokens first_tokens(const models::Tokenizer& tokenizer, std::string_view text, std::int64_t most) {
  // One token more than fits tells whether something is cut.
  TextTokens tokens{tokenizer.encode(text, most + 1), false};
  tokens.cut = static_cast<std::int64_t>(tokens.ids.size()) > most;
  if (tokens.cut) tokens.ids.erase(tokens.ids.end() - 2);
  return tokens;
}

// Of any model.
inline TextTokens first_tokens(const models::TextEncoder& model, std::string_view text, std::int64_t most) {
  if (model.has_tokenizer()) return first_tokens(model.tokenizer(), text, most);
  TextTokens tokens{model.tokenize(text, most), false};
  // Such tokenizers need not keep to the same tokens where a text goes on, but a longer one has no fewer.
  tokens.cut = static_cast<std::int64_t>(tokens.ids.size()) == most &&
               static_cast<std::int64_t>(model.tokenize(text, INT64_MAX).size()) > most;
  return tokens;
}

}  // namespace headlight::program
