// The longest words of a vocabulary, for texts that may have no spaces between them.
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "models/basic_tokenizer.h"
#include "models/wordpiece.h"

namespace headlight::models {
namespace {

// Whether the code point is part of a word that goes on until another comes that is not.
bool joins(char32_t codepoint) { return !is_ideograph(codepoint) && !is_punctuation(codepoint); }

}  // namespace

std::size_t WordPiece::append_whole_words(std::u32string_view chunk, bool ends, std::int64_t unknown, std::size_t most,
                                          bool& in_unknown, std::vector<std::int64_t>& ids) const {
  std::size_t at = 0;
  while (in_unknown && at < chunk.size() && joins(chunk[at])) ++at;
  in_unknown = in_unknown && at == chunk.size() && !ends;
  while (at < chunk.size() && ids.size() < most) {
    const std::u32string_view rest = chunk.substr(at);
    if (!ends && rest.size() <= kLongestWord) break;
    const std::size_t longest = std::min(rest.size(), kLongestWord);
    std::array<utf8proc_uint8_t, 4 * kLongestWord> utf8{};
    std::size_t bytes = 0, taken = 0;
    std::int64_t id = unknown;
    for (std::size_t n = 0; n < longest && bytes <= longest_; ++n) {
      bytes +=
          static_cast<std::size_t>(utf8proc_encode_char(static_cast<utf8proc_int32_t>(rest[n]), utf8.data() + bytes));
      if (n + 1 < rest.size() && joins(rest[n]) && joins(rest[n + 1])) continue;
      const auto found = tokens_.find({reinterpret_cast<const char*>(utf8.data()), bytes});
      if (!found) continue;
      id = *found;
      taken = n + 1;
    }
    if (taken == 0) {
      taken = 1;
      while (taken < rest.size() && joins(rest[taken - 1]) && joins(rest[taken])) ++taken;
      in_unknown = taken == rest.size() && joins(rest.back()) && !ends;
    }
    ids.push_back(id);
    at += taken;
  }
  return at;
}

}  // namespace headlight::models
