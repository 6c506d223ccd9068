// What kinds of characters there are, as the published tokenizers tell them apart.
#pragma once

namespace headlight::text {

// Unicode's White_Space, at which words end.
[[nodiscard]] bool is_white_space(char32_t codepoint);
// What clean-up takes away: controls but for tab and line ends, format characters, private use, U+FFFD.
[[nodiscard]] bool is_removed(char32_t codepoint);
// Accents: nonspacing marks.
[[nodiscard]] bool is_stripped_mark(char32_t codepoint);
// What BERT calls an ideograph and a mark.
[[nodiscard]] bool is_ideograph(char32_t codepoint);
[[nodiscard]] bool is_punctuation(char32_t codepoint);
// Digits and other numbers.
[[nodiscard]] bool is_number(char32_t codepoint);
// What a regular expression of Unicode calls \w: Alphabetic, marks, decimal digits, connectors, joiners.
[[nodiscard]] bool is_word_character(char32_t codepoint);

}  // namespace headlight::text
