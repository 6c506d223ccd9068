#include "text/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "text/published_categories.h"
#include "text/published_versions.h"

namespace headlight::text {

bool is_removed(char32_t codepoint) {
  if (codepoint == '\t' || codepoint == '\n' || codepoint == '\r') return false;
  if (codepoint == 0xFFFD) return true;
  const auto value = static_cast<utf8proc_int32_t>(codepoint);
  switch (utf8proc_category(value)) {
    case UTF8PROC_CATEGORY_CF:
      return !in_ranges(kKeptFormatCharacters, value);
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CO:
      return true;
    default:
      return false;
  }
}

bool is_stripped_mark(char32_t codepoint) {
  const auto value = static_cast<utf8proc_int32_t>(codepoint);
  if (utf8proc_category(value) == UTF8PROC_CATEGORY_MN) return !in_ranges(kKeptMarks, value);
  return in_ranges(kExtraMarks, value);
}

// The blocks of CJK ideographs that BERT sets apart; not those assigned later, nor Hangul, Hiragana or Katakana. The
// gap of 0x2B820 … 0x2B91F, and the start of 0x2B920, are the published tokenizer's own.
bool is_ideograph(char32_t codepoint) {
  const auto within = [codepoint](char32_t first, char32_t last) { return first <= codepoint && codepoint <= last; };
  return within(0x4E00, 0x9FFF) || within(0x3400, 0x4DBF) || within(0x20000, 0x2A6DF) || within(0x2A700, 0x2B73F) ||
         within(0x2B740, 0x2B81F) || within(0x2B920, 0x2CEAF) || within(0xF900, 0xFAFF) || within(0x2F800, 0x2FA1F);
}

bool is_punctuation(char32_t codepoint) {
  if (codepoint < 0x80) {  // every ASCII symbol counts, "$" and "^" too
    return (codepoint >= '!' && codepoint <= '/') || (codepoint >= ':' && codepoint <= '@') ||
           (codepoint >= '[' && codepoint <= '`') || (codepoint >= '{' && codepoint <= '~');
  }
  const auto value = static_cast<utf8proc_int32_t>(codepoint);
  const auto category = utf8proc_category(value);
  if (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO)
    return !in_ranges(kJoinedPunctuation, value);
  return in_ranges(kExtraPunctuation, value);
}

bool is_number(char32_t codepoint) {
  switch (general_category(codepoint)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return in_ranges(kLatestNumbers, static_cast<std::int32_t>(codepoint));
  }
}

const std::uint32_t kWordCategories =
    1U << UTF8PROC_CATEGORY_LU | 1U << UTF8PROC_CATEGORY_LL | 1U << UTF8PROC_CATEGORY_LT | 1U << UTF8PROC_CATEGORY_LM |
    1U << UTF8PROC_CATEGORY_LO | 1U << UTF8PROC_CATEGORY_MN | 1U << UTF8PROC_CATEGORY_MC | 1U << UTF8PROC_CATEGORY_ME |
    1U << UTF8PROC_CATEGORY_ND | 1U << UTF8PROC_CATEGORY_NL | 1U << UTF8PROC_CATEGORY_PC;

bool is_word_character(char32_t codepoint) {
  const auto within = [codepoint](const CharacterRange& range) {
    return range.first <= codepoint && codepoint <= range.last;
  };
  return (kWordCategories >> general_category(codepoint) & 1) != 0 || within({0x200C, 0x200D}) ||
         std::any_of(std::begin(kEnclosedLetters), std::end(kEnclosedLetters), within);
}

int general_category(char32_t codepoint) noexcept {
  const auto value = static_cast<utf8proc_int32_t>(codepoint);
  const utf8proc_category_t category = utf8proc_category(value);
  if (value == kMovedMark) return UTF8PROC_CATEGORY_MC;
  return category == UTF8PROC_CATEGORY_CN ? later_category(value) : category;
}

std::uint8_t CharacterTable::fill(char32_t character) const {
  const std::uint8_t value = function_(character);
  table_[character].store(static_cast<std::uint8_t>(value + 1), std::memory_order_relaxed);
  return value;
}

}  // namespace headlight::text
