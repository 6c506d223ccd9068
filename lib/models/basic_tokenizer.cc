#include "models/basic_tokenizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "models/published_categories.h"

namespace headlight::models {

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

namespace {

bool is_white_space(char32_t codepoint) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(codepoint))) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:  // the other white space among the controls is removed with them
      return codepoint == '\t' || codepoint == '\n' || codepoint == '\r';
  }
}

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

int combining_class(char32_t codepoint) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(codepoint))->combining_class;
}

void append_decomposed(char32_t codepoint, std::u32string& into) {
  std::array<utf8proc_int32_t, 8> parts{};  // no canonical decomposition has more than 4
  int boundary = 0;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(codepoint), parts.data(),
                              static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, &boundary);
  for (utf8proc_ssize_t part = 0; part < count; ++part) {
    into.push_back(static_cast<char32_t>(parts[static_cast<std::size_t>(part)]));
  }
}

// Canonical decomposition (NFD), then without its nonspacing marks. Runs of marks are sorted in n log n, whatever their
// length (utf8proc's own reordering takes n², which a hostile text would use).
void strip_accents(std::u32string& word) {
  std::u32string decomposed;
  decomposed.reserve(word.size());
  for (const char32_t codepoint : word) append_decomposed(codepoint, decomposed);
  for (auto run = decomposed.begin(); run != decomposed.end();) {
    const auto begin = std::find_if(run, decomposed.end(), [](char32_t c) { return combining_class(c) != 0; });
    run = std::find_if(begin, decomposed.end(), [](char32_t c) { return combining_class(c) == 0; });
    std::stable_sort(begin, run, [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
  }
  std::erase_if(decomposed, is_stripped_mark);
  word = std::move(decomposed);
}

// Code point by code point and without context, so Σ is σ at the end of a word too; only İ becomes two.
void lower_case(std::u32string& word) {
  std::u32string lowered;
  lowered.reserve(word.size());
  for (const char32_t codepoint : word) {
    if (codepoint == U'\u0130') {
      lowered += U"i\u0307";
    } else {
      lowered.push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(codepoint))));
    }
  }
  word = std::move(lowered);
}

// What lies between two spaces, as words: punctuation marks stand alone.
bool finish(std::u32string& chunk, const TokenizerOptions& options, const WordSink& sink) {
  if (chunk.empty()) return true;
  if (options.strip_accents.value_or(options.lower_case)) strip_accents(chunk);
  if (options.lower_case) lower_case(chunk);
  const std::u32string_view all = chunk;
  std::size_t begin = 0;
  bool goes_on = true;
  if (options.whole_words) {
    goes_on = sink(all);
    chunk.clear();
    return goes_on;
  }
  for (std::size_t at = 0; at < all.size() && goes_on; ++at) {
    if (!is_punctuation(all[at])) continue;
    if (at > begin) goes_on = sink(all.substr(begin, at - begin));
    if (goes_on) goes_on = sink(all.substr(at, 1));
    begin = at + 1;
  }
  if (goes_on && begin < all.size()) goes_on = sink(all.substr(begin));
  chunk.clear();
  return goes_on;
}

}  // namespace

bool split_words(std::string_view text, const TokenizerOptions& options, const WordSink& sink) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  std::u32string chunk;
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t decoded = 0;
    const auto length = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &decoded);
    at += static_cast<std::size_t>(std::max<utf8proc_ssize_t>(length, 1));
    const auto codepoint = static_cast<char32_t>(decoded);
    if (length <= 0 || is_removed(codepoint)) continue;
    const bool apart = options.split_ideographs && !options.whole_words && is_ideograph(codepoint);
    if ((apart || is_white_space(codepoint)) && !finish(chunk, options, sink)) return false;
    if (is_white_space(codepoint)) continue;
    chunk.push_back(codepoint);
    if (apart && !finish(chunk, options, sink)) return false;
  }
  return finish(chunk, options, sink);
}

}  // namespace headlight::models
