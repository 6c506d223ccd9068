#include "tools/headlight/support/display_text.h"

#include <algorithm>

#include "headlight/models/errors.h"

namespace headlight::program {
namespace {

bool is_between(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }

bool is_kana(char32_t code) { return is_between(code, 0x3041, 0x30FF) || is_between(code, 0x31F0, 0x31FF); }
bool is_hangul(char32_t code) { return is_between(code, 0x1100, 0x11FF) || is_between(code, 0xAC00, 0xD7A3); }
bool is_ideograph(char32_t code) {
  return is_between(code, 0x3400, 0x4DBF) || is_between(code, 0x4E00, 0x9FFF) || is_between(code, 0xF900, 0xFAFF) ||
         is_between(code, 0x20000, 0x3FFFD);
}

// East Asian wide and full-width blocks, and pictographs (Unicode Standard Annex 11, coarsely).
bool is_wide(char32_t code) {
  return is_ideograph(code) || is_between(code, 0x1100, 0x115F) || is_between(code, 0x2E80, 0xA4CF) ||
         is_between(code, 0xAC00, 0xD7A3) || is_between(code, 0xFE30, 0xFE6F) || is_between(code, 0xFF01, 0xFF60) ||
         is_between(code, 0xFFE0, 0xFFE6) || is_between(code, 0x1F300, 0x1FAFF);
}

bool combines(char32_t code) {
  return is_between(code, 0x0300, 0x036F) || is_between(code, 0x1AB0, 0x1AFF) || is_between(code, 0x20D0, 0x20FF) ||
         is_between(code, 0xFE00, 0xFE0F) || is_between(code, 0xFE20, 0xFE2F);
}

std::size_t columns_of(char32_t code) { return combines(code) ? 0 : is_wide(code) ? 2 : 1; }

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for_each_code_point(text, [&](char32_t code) {
    columns += columns_of(code);
    return true;
  });
  return columns;
}

std::string at_right(const std::string& text, std::size_t columns) {
  const std::size_t taken = columns_of(text);
  return std::string(columns > taken ? columns - taken : 0, ' ') + text;
}

std::string label(std::string_view text, std::size_t columns) {
  std::string spaced;
  for (const char letter : text) {
    if (!is_space(letter)) {
      spaced += letter;
    } else if (!spaced.empty() && spaced.back() != ' ') {
      spaced += ' ';
    }
  }
  std::string shown = models::printable(spaced);
  if (columns_of(shown) <= columns) return shown;
  std::size_t taken = 0;
  const std::size_t bytes = for_each_code_point(shown, [&](char32_t code) {
    taken += columns_of(code);
    return taken < columns;
  });
  shown.resize(bytes);
  return shown + "…";
}

std::string language_of(std::string_view text) {
  bool ideographs = false;
  std::string language;
  for_each_code_point(text, [&](char32_t code) {
    ideographs = ideographs || is_ideograph(code);
    if (is_kana(code)) language = "ja";
    if (is_hangul(code)) language = "ko";
    return language.empty();
  });
  return !language.empty() ? language : ideographs ? "zh" : "";
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

}  // namespace headlight::program
