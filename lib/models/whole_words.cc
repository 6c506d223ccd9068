// The longest words of a vocabulary, for texts that may have no spaces between them.
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "models/basic_tokenizer.h"
#include "models/wordpiece.h"

namespace headlight::models {
namespace {

constexpr std::size_t kLongestWord = 100;  // code points, as for pieces

// Whether the code point is part of a word that goes on until another comes that is not.
bool joins(char32_t codepoint) { return !is_ideograph(codepoint) && !is_punctuation(codepoint); }

}  // namespace

void WordPiece::append_whole_words(std::u32string_view chunk, std::int64_t unknown, std::size_t most,
                                   std::vector<std::int64_t>& ids) const {
  while (!chunk.empty() && ids.size() < most) {
    const std::size_t longest = std::min(chunk.size(), kLongestWord);
    std::array<utf8proc_uint8_t, 4 * kLongestWord> utf8{};
    std::size_t bytes = 0, taken = 0;
    std::int64_t id = unknown;
    for (std::size_t n = 0; n < longest && bytes <= longest_; ++n) {
      bytes +=
          static_cast<std::size_t>(utf8proc_encode_char(static_cast<utf8proc_int32_t>(chunk[n]), utf8.data() + bytes));
      if (n + 1 < chunk.size() && joins(chunk[n]) && joins(chunk[n + 1])) continue;
      const auto found = tokens_.find({reinterpret_cast<const char*>(utf8.data()), bytes});
      if (found == tokens_.end()) continue;
      id = found->second;
      taken = n + 1;
    }
    if (taken == 0) {
      taken = 1;
      while (taken < chunk.size() && joins(chunk[taken - 1]) && joins(chunk[taken])) ++taken;
    }
    ids.push_back(id);
    chunk.remove_prefix(taken);
  }
}

}  // namespace headlight::models
