#include "text/cut.h"

#include <algorithm>
#include <iterator>

#include "text/utf8.h"

namespace headlight::text {
bool is_cut_letter(char32_t character) noexcept {
  return std::any_of(std::begin(kCutLetters), std::end(kCutLetters), [character](const CharacterRange& range) {
    return character >= range.first && character <= range.last;
  });
}

std::size_t find_cut(std::string_view text, std::size_t from, std::size_t to) {
  text = text.substr(0, to);
  const auto letter_before = [text](std::size_t& at) { return at > 0 && is_cut_letter(previous_code_point(text, at)); };
  for (std::size_t space = text.find(' ', from); space < text.size(); space = text.find(' ', space + 1)) {
    std::size_t before = space, behind = space + 1;
    const bool letters = behind < text.size() && is_cut_letter(next_code_point(text, behind)) &&
                         letter_before(before) && letter_before(before);
    if (letters) return space;
  }
  return 0;
}

bool has_no_letters(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
    const bool metaspace = text.starts_with(kMetaspace);
    if (letter || (byte >= 0x80 && !metaspace)) return false;
    text.remove_prefix(metaspace ? kMetaspace.size() : 1);
  }
  return true;
}

}  // namespace headlight::text
