// Which tokens of a text make which of its words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/tokenizer.h"
#include "tools/headlight/beams.h"

namespace headlight::program {

struct WordTokens {
  BeamWord word;
  std::int64_t begin = 0, end = 0;  // of the ids
};

// `ids` are what the tokenizer made of `text`. Words stand as the text has them, "didn't" in one; the marks before and
// behind them stand for themselves ("tired", "."), and so does every ideograph. `pieces`: every token does, as "##s".
[[nodiscard]] std::vector<WordTokens> words_of(const models::Tokenizer& tokenizer, std::string_view text,
                                               std::span<const std::int64_t> ids, bool pieces);

}  // namespace headlight::program
