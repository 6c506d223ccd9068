// What kinds of characters there are, as the published tokenizers tell them apart.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "text/table_limit.h"

namespace headlight::text {

// Unicode's White_Space, at which words end.
[[nodiscard]] constexpr bool is_white_space(char32_t codepoint) noexcept {
  if (codepoint < 0x1680) {
    return codepoint == ' ' || (codepoint >= '\t' && codepoint <= '\r') || codepoint == 0x85 || codepoint == 0xA0;
  }
  return codepoint == 0x1680 || (codepoint >= 0x2000 && codepoint <= 0x200A) || codepoint == 0x2028 ||
         codepoint == 0x2029 || codepoint == 0x202F || codepoint == 0x205F || codepoint == 0x3000;
}
// What clean-up takes away: controls but for tab and line ends, format characters, private use, U+FFFD.
[[nodiscard]] bool is_removed(char32_t codepoint);
// Accents: nonspacing marks.
[[nodiscard]] bool is_stripped_mark(char32_t codepoint);
// What BERT calls an ideograph and a mark.
[[nodiscard]] bool is_ideograph(char32_t codepoint);
[[nodiscard]] bool is_punctuation(char32_t codepoint);
// Digits and other numbers.
[[nodiscard]] bool is_number(char32_t codepoint);
// What Unicode calls \w: Alphabetic, marks, decimal digits, connectors, joiners.
[[nodiscard]] bool is_word_character(char32_t codepoint);
struct CharacterRange {
  char32_t first, last;

  bool operator==(const CharacterRange&) const = default;
};
// Of them, all but joiners: those of these categories (bit c: general category c), and letters in circles and squares,
// which are symbols.
extern const std::uint32_t kWordCategories;
inline constexpr CharacterRange kEnclosedLetters[] = {
    {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
// The general category in Unicode 16.0, as utf8proc numbers them, 0 to 29. utf8proc itself may know an earlier version.
[[nodiscard]] int general_category(char32_t codepoint) noexcept;
inline constexpr int kGeneralCategories = 30;

// What a function says of characters, below 255, looked up in a table below U+10000. A place of it is filled when a
// text first has that character, by whichever thread.
class CharacterTable {
 public:
  using Function = std::function<std::uint8_t(char32_t)>;
  // `function` may be called by several threads.
  CharacterTable(Function function, TableLimit& limit) : function_(std::move(function)) {
    limit.take(kEnd);
    table_ = std::vector<std::atomic<std::uint8_t>>(kEnd);
  }
  [[nodiscard]] std::uint8_t operator()(char32_t character) const {
    if (character >= kEnd) return function_(character);
    const std::uint8_t known = table_[character].load(std::memory_order_relaxed);
    return known != 0 ? static_cast<std::uint8_t>(known - 1) : fill(character);
  }

 private:
  static constexpr char32_t kEnd = 0x10000;

  [[nodiscard]] std::uint8_t fill(char32_t character) const;

  Function function_;
  mutable std::vector<std::atomic<std::uint8_t>> table_;  // one more than the value; 0: not known yet
};

}  // namespace headlight::text
