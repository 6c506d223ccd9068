// The words of a text, and which of its tokens make them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/text_encoder.h"

namespace headlight::program {

struct Word {
  std::string text;
  // [CLS], [SEP]: where heads look that look for nothing. Drawn dimmed.
  bool special = false;
};

struct WordTokens {
  Word word;
  std::int64_t begin = 0, end = 0;  // of the ids
};

// `ids` are what the tokenizer made of `text`. Words stand as the text has them, "didn't" in one; the marks before and
// behind them stand for themselves ("tired", "."), and so does every ideograph. `pieces`: every token does, as "##s".
[[nodiscard]] std::vector<WordTokens> words_of(const models::Tokenizer& tokenizer, std::string_view text,
                                               std::span<const std::int64_t> ids, bool pieces);

// The same of any model. With another tokenizer than BERT's a word begins at a token that the text has a space before,
// and marks before and behind it stand for themselves where they are tokens of their own.
[[nodiscard]] std::vector<WordTokens> words_of(const models::TextEncoder& model, std::string_view text,
                                               std::span<const std::int64_t> ids, bool pieces);

}  // namespace headlight::program
