// A text as tokens, as many as a model takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/errors.h"
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

// Throws FileError where no --text has anything between [CLS] and [SEP].
inline void expect_words(const models::Tokenizer& tokenizer, std::span<const std::string> texts) {
  const auto is_empty = [&](const std::string& text) { return tokenizer.encode(text, 3).size() <= 2; };
  if (std::all_of(texts.begin(), texts.end(), is_empty)) {
    throw models::FileError("--text", "holds no words, expected a sentence");
  }
}

}  // namespace headlight::program
