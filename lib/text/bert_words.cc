#include "text/bert_words.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "text/characters.h"
#include "text/unicode_forms.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

// What becomes of a character of ASCII, which has no marks.
struct AsciiLetter {
  char lower = '\0';
  bool space = false, removed = false, mark = false;
};

constexpr std::array<AsciiLetter, 128> kAsciiLetters = [] {
  std::array<AsciiLetter, 128> letters{};
  for (std::size_t c = 0; c < letters.size(); ++c) {
    const bool upper = c >= 'A' && c <= 'Z', word = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    letters[c].lower = static_cast<char>(upper ? c + 0x20 : c);
    letters[c].space = c == ' ' || (c >= '\t' && c <= '\r');
    letters[c].removed = (c < 0x20 || c == 0x7F) && c != '\t' && c != '\n' && c != '\r';
    letters[c].mark = c > 0x20 && c < 0x7F && !word;
  }
  return letters;
}();

// The code points that have come since the last space or word, normalised one after another.
class Words {
 public:
  Words(const BertRules& rules, bool chunks, WordSink& sink) : rules_(rules), chunks_(chunks), sink_(sink) {}

  // A code point of the text that is no white space. False: no more is wanted.
  bool push(char32_t codepoint) {
    if (!rules_.strips) return lower(codepoint);
    std::array<std::int32_t, kMostDecomposed> parts{};
    const std::size_t count = decompose(static_cast<std::int32_t>(codepoint), {}, parts);
    for (std::size_t n = 0; n < count; ++n) {
      const auto part = static_cast<char32_t>(parts[n]);
      const bool is_base = combining_class(parts[n]) == 0;
      if (is_base) sort_marks();
      if (is_stripped_mark(part)) continue;
      if (!lower(part)) return false;
      if (is_base) first_mark_ = size_;
    }
    return true;
  }
  bool push_ascii(const AsciiLetter& letter, char byte) {
    if (first_mark_ != size_) sort_marks();
    const char32_t codepoint = static_cast<unsigned char>(rules_.lowers ? letter.lower : byte);
    const bool goes_on = letter.mark && !chunks_ ? take_mark(codepoint) : append_plain(codepoint);
    first_mark_ = size_;
    return goes_on;
  }

  // White space, or the end of the text.
  bool finish() {
    if (size_ == 0 && !chunks_) return true;
    sort_marks();
    const bool goes_on = chunks_ ? take_chunk(true) : take_word();
    size_ = first_mark_ = 0;
    return goes_on;
  }

 private:
  // Lower-cases code point by code point and without context, so Σ is σ at the end of a word too; only İ becomes two.
  bool lower(char32_t codepoint) {
    if (!rules_.lowers) return append(codepoint);
    if (codepoint == U'\u0130') return append(U'i') && append(U'\u0307');
    return append(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(codepoint))));
  }
  bool append(char32_t codepoint) {
    return !chunks_ && is_punctuation(codepoint) ? take_mark(codepoint) : append_plain(codepoint);
  }
  bool append_plain(char32_t codepoint) {
    if (chunks_) {
      codepoints_[size_++] = codepoint;
      return size_ < codepoints_.size() || take_chunk(false);
    }
    // What goes on is only too long.
    if (size_ <= kLongestWord) codepoints_[size_++] = codepoint;
    return true;
  }
  bool take_mark(char32_t codepoint) {
    if (!take_word()) return false;
    codepoints_[0] = codepoint;
    size_ = 1;
    return take_word();
  }

  bool take_word() {
    if (size_ == 0) return true;
    std::array<utf8proc_uint8_t, 4 * (kLongestWord + 1)> bytes;
    std::size_t end = 0;
    for (std::size_t n = 0; n < size_; ++n) {
      if (codepoints_[n] < 0x80) {
        bytes[end++] = static_cast<utf8proc_uint8_t>(codepoints_[n]);
      } else {
        const auto codepoint = static_cast<utf8proc_int32_t>(codepoints_[n]);
        end += static_cast<std::size_t>(utf8proc_encode_char(codepoint, bytes.data() + end));
      }
    }
    const std::size_t count = std::exchange(size_, 0);
    first_mark_ = 0;
    return sink_.take_word({reinterpret_cast<const char*>(bytes.data()), end}, count);
  }

  bool take_chunk(bool ends) {
    // Marks that others may yet come before wait, unless they are more than any word has.
    if (!rules_.strips || first_mark_ <= kLongestWord + 1) sort_marks();
    std::size_t taken = 0;
    const bool goes_on = first_mark_ == 0 || sink_.take_chunk({codepoints_.data(), first_mark_}, ends, taken);
    const auto begin = codepoints_.begin();
    std::copy(begin + static_cast<std::ptrdiff_t>(taken), begin + static_cast<std::ptrdiff_t>(size_), begin);
    size_ -= taken;
    first_mark_ -= taken;
    return goes_on;
  }

  // Puts the marks behind the last base character into canonical order. Nonspacing ones are gone, so they are few, or
  // the word is too long for its order to matter.
  void sort_marks() {
    if (rules_.strips) {
      char32_t* const first = codepoints_.data() + first_mark_;
      const auto order = [](char32_t mark) { return combining_class(static_cast<std::int32_t>(mark)); };
      for (char32_t* mark = first + 1; mark < codepoints_.data() + size_; ++mark) {
        for (char32_t* at = mark; at > first && order(at[-1]) > order(at[0]); --at) std::swap(at[-1], at[0]);
      }
    }
    first_mark_ = size_;
  }

  BertRules rules_;
  bool chunks_;
  WordSink& sink_;
  // A word and one more; of chunks as many as make looking ahead rare.
  std::array<char32_t, 512> codepoints_;
  std::size_t size_ = 0;
  std::size_t first_mark_ = 0;  // behind the last base character
};

}  // namespace

bool split_words(std::string_view text, const BertRules& rules, bool chunks, WordSink& sink) {
  Words words(rules, chunks, sink);
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      const char byte = text[at++];
      const AsciiLetter& letter = kAsciiLetters[static_cast<unsigned char>(byte)];
      if (letter.removed && rules.cleans) continue;
      if (!(letter.space ? words.finish() : words.push_ascii(letter, byte))) return false;
      continue;
    }
    const char32_t codepoint = next_code_point(text, at);
    if (rules.cleans && is_removed(codepoint)) continue;
    const bool apart = rules.sets_apart && is_ideograph(codepoint);
    const bool space = is_white_space(codepoint);
    if ((apart || space) && !words.finish()) return false;
    if (space) continue;
    if (!words.push(codepoint)) return false;
    if (apart && !words.finish()) return false;
  }
  return words.finish();
}

bool split_normalized(std::string_view text, WordSink& sink) {
  std::size_t begin = 0, code_points = 0;  // of the word
  const auto give = [&](std::size_t end) {
    return end == begin || sink.take_word(text.substr(begin, end - begin), std::exchange(code_points, 0));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    const char32_t codepoint = next_code_point(text, at);
    const bool mark = is_punctuation(codepoint);
    if (!mark && !is_white_space(codepoint)) {
      ++code_points;
      continue;
    }
    if (!give(before)) return false;
    begin = at;
    if (mark && !sink.take_word(text.substr(before, at - before), 1)) return false;
  }
  return give(text.size());
}

}  // namespace headlight::text
