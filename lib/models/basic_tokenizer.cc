#include "models/basic_tokenizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

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

// The code points that have come since the last space or word, normalised one after another.
class Words {
 public:
  Words(const TokenizerOptions& options, WordSink& sink)
      : strips_(options.strip_accents.value_or(options.lower_case)),
        lowers_(options.lower_case),
        whole_(options.whole_words),
        sink_(sink) {}

  // A code point of the text that is no white space. False: no more is wanted.
  bool push(char32_t codepoint) {
    if (!strips_) return lower(codepoint);
    std::array<utf8proc_int32_t, 8> parts{};  // no canonical decomposition has more than 4
    int boundary = 0;
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(codepoint), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, &boundary);
    for (utf8proc_ssize_t part = 0; part < count; ++part) {
      const auto one = static_cast<char32_t>(parts[static_cast<std::size_t>(part)]);
      const bool is_base = combining_class(one) == 0;
      if (is_base) sort_marks();
      if (is_stripped_mark(one)) continue;
      if (!lower(one)) return false;
      if (is_base) first_mark_ = size_;
    }
    return true;
  }

  // White space, or the end of the text.
  bool finish() {
    sort_marks();
    const bool goes_on = whole_ ? take_chunk(true) : take_word();
    size_ = first_mark_ = 0;
    return goes_on;
  }

 private:
  // Lower-cases code point by code point and without context, so Σ is σ at the end of a word too; only İ becomes two.
  bool lower(char32_t codepoint) {
    if (!lowers_) return append(codepoint);
    if (codepoint == U'\u0130') return append(U'i') && append(U'\u0307');
    return append(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(codepoint))));
  }

  bool append(char32_t codepoint) {
    if (whole_) {
      codepoints_[size_++] = codepoint;
      return size_ < codepoints_.size() || take_chunk(false);
    }
    if (is_punctuation(codepoint)) return take_word() && sink_.take_word({&codepoint, 1});
    // What goes on is only too long.
    if (size_ <= kLongestWord) codepoints_[size_++] = codepoint;
    return true;
  }

  bool take_word() {
    const bool goes_on = size_ == 0 || sink_.take_word({codepoints_.data(), size_});
    size_ = first_mark_ = 0;
    return goes_on;
  }

  bool take_chunk(bool ends) {
    // Marks that others may yet come before wait, unless they are more than any word has.
    if (!strips_ || first_mark_ <= kLongestWord + 1) sort_marks();
    std::size_t taken = 0;
    const bool goes_on = first_mark_ == 0 || sink_.take_chunk({codepoints_.data(), first_mark_}, ends, taken);
    const auto begin = codepoints_.begin();
    std::copy(begin + static_cast<std::ptrdiff_t>(taken), begin + static_cast<std::ptrdiff_t>(size_), begin);
    size_ -= taken;
    first_mark_ -= taken;
    return goes_on;
  }

  // Puts the marks behind the last base character into canonical order. Nonspacing ones are gone by then, so they are
  // few, or the word is too long for its order to matter.
  void sort_marks() {
    for (std::size_t mark = first_mark_ + 1; strips_ && mark < size_; ++mark) {
      for (std::size_t at = mark; at > first_mark_; --at) {
        if (combining_class(codepoints_[at - 1]) <= combining_class(codepoints_[at])) break;
        std::swap(codepoints_[at - 1], codepoints_[at]);
      }
    }
    first_mark_ = size_;
  }

  bool strips_, lowers_, whole_;
  WordSink& sink_;
  // A word and one more; of whole words as many as make looking ahead rare.
  std::array<char32_t, 512> codepoints_{};
  std::size_t size_ = 0;
  std::size_t first_mark_ = 0;  // behind the last base character
};

}  // namespace

bool split_words(std::string_view text, const TokenizerOptions& options, WordSink& sink) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  Words words(options, sink);
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t decoded = 0;
    const auto length = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &decoded);
    at += static_cast<std::size_t>(std::max<utf8proc_ssize_t>(length, 1));
    const auto codepoint = static_cast<char32_t>(decoded);
    if (length <= 0 || is_removed(codepoint)) continue;
    const bool apart = options.split_ideographs && !options.whole_words && is_ideograph(codepoint);
    if ((apart || is_white_space(codepoint)) && !words.finish()) return false;
    if (is_white_space(codepoint)) continue;
    if (!words.push(codepoint)) return false;
    if (apart && !words.finish()) return false;
  }
  return words.finish();
}

}  // namespace headlight::models
