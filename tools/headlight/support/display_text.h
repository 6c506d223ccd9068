// Words in pictures and tables: what may be shown of them, how wide they are, in which language they stand, and how
// they enter a file.
#pragma once

#include <string>
#include <string_view>

namespace headlight::program {

// What separates words in ASCII.
[[nodiscard]] constexpr bool is_space(char letter) noexcept {
  return letter == ' ' || (letter >= '\t' && letter <= '\r');
}

// `text` as one short label: runs of spaces and line ends become one space, other control and format characters are
// spelled out, and what goes beyond `columns` is cut and ends in "…".
[[nodiscard]] std::string label(std::string_view text, std::size_t columns);

// The columns of a fixed-width screen that the text takes: two for ideographs, syllables of Hangul, kana and most
// pictures, none for marks that combine, one for others. The text is UTF-8.
[[nodiscard]] std::size_t columns_of(std::string_view text);

// The text behind as many spaces as make it `columns` wide: a cell of a table on a terminal.
[[nodiscard]] std::string at_right(const std::string& text, std::size_t columns);

// "zh", "ja" or "ko", for the shapes of ideographs differ; empty where there are none.
[[nodiscard]] std::string language_of(std::string_view text);

// With &, <, >, " and ' as entities: fit for content and attributes of HTML and SVG.
[[nodiscard]] std::string escaped(std::string_view text);

// Calls take(code point) for each of UTF-8 text; stops early when it gives false, and gives the bytes it went over.
template <class Take>
std::size_t for_each_code_point(std::string_view text, Take take) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t count = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t code = lead < 0x80 ? lead : lead & (0xFFu >> (count + 1));
    for (std::size_t k = 1; k < count && at + k < text.size(); ++k) {
      code = code << 6 | (static_cast<unsigned char>(text[at + k]) & 0x3Fu);
    }
    if (!take(code)) break;
    at += count;
  }
  return at;
}

}  // namespace headlight::program
