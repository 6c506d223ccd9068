#include "models/tokenizers/whole_words.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "text/bert_words.h"
#include "text/characters.h"

namespace headlight::models {

using text::kLongestWord;

namespace {

// Whether the code point is part of a word that goes on until another comes that is not.
bool joins(char32_t codepoint) { return !text::is_ideograph(codepoint) && !text::is_punctuation(codepoint); }

}  // namespace

std::size_t append_whole_words(const text::Trie& words, std::u32string_view chunk, bool ends, std::int64_t unknown,
                               std::size_t most, bool& in_unknown, std::vector<std::int64_t>& ids) {
  std::size_t at = 0;
  while (in_unknown && at < chunk.size() && joins(chunk[at])) ++at;
  in_unknown = in_unknown && at == chunk.size() && !ends;
  while (at < chunk.size() && ids.size() < most) {
    const std::u32string_view rest = chunk.substr(at);
    if (!ends && rest.size() <= kLongestWord) break;
    const std::size_t longest = std::min(rest.size(), kLongestWord);
    std::size_t taken = 0;
    std::int64_t id = unknown;
    text::Trie::Walk walk(words);
    bool goes_on = true;
    for (std::size_t n = 0; n < longest && goes_on; ++n) {
      std::array<utf8proc_uint8_t, 4> bytes{};
      const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(rest[n]), bytes.data());
      for (std::size_t byte = 0; byte < static_cast<std::size_t>(size) && goes_on; ++byte) {
        goes_on = walk.advance(static_cast<char>(bytes[byte]));
      }
      const bool inside = n + 1 < rest.size() && joins(rest[n]) && joins(rest[n + 1]);
      if (!goes_on || inside || walk.token() == text::Trie::kNone) continue;
      id = walk.token();
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
