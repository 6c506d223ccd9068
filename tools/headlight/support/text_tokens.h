// A text as tokens, as many as a model takes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headlight/models/tokenizer.h"

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

}  // namespace headlight::program
