// Where a text may be cut that only the first tokens are wanted of.
//
// A cut lies before a space that has two letters of cuts before it and one behind. Where no part of a tokenizer looks
// beyond such a place, the ids of the text before it are the first ids of the whole text.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/characters.h"

namespace headlight::text {

// What stands for spaces in SentencePiece's texts.
inline constexpr std::string_view kMetaspace = "\u2581";

// Letters that decompose, if at all, into letters and marks of letters, are no ideographs, and are grapheme clusters by
// themselves between letters: some of Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Hangul.
inline constexpr CharacterRange kCutLetters[] = {
    {U'A', U'Z'},           {U'a', U'z'},           {U'\u00C0', U'\u00D6'}, {U'\u00D8', U'\u00F6'},
    {U'\u00F8', U'\u00FF'}, {U'\u03B1', U'\u03C9'}, {U'\u0410', U'\u044F'}, {U'\u05D0', U'\u05EA'},
    {U'\u0627', U'\u063A'}, {U'\u0641', U'\u064A'}, {U'\u0904', U'\u0939'}, {U'\uAC00', U'\uD7A3'}};

[[nodiscard]] bool is_cut_letter(char32_t character) noexcept;

// The first cut in text[from, to), as the size of the text before it; 0: there is none.
[[nodiscard]] std::size_t find_cut(std::string_view text, std::size_t from, std::size_t to);

// Whether a text that is looked for, or replaced, cannot lie across a cut: it has neither letters nor their marks.
[[nodiscard]] bool has_no_letters(std::string_view text) noexcept;

}  // namespace headlight::text
