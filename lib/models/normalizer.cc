#include "models/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/basic_tokenizer.h"
#include "text/utf8.h"

namespace headlight::models {

using text::append_utf8;
using text::next_code_point;

int CodePointNormalizer::combining_class(char32_t codepoint) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(codepoint))->combining_class;
}

std::size_t CodePointNormalizer::decompose(char32_t codepoint, char32_t* parts) {
  std::array<utf8proc_int32_t, kMostParts> found{};
  int boundary = 0;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(codepoint), found.data(),
                              static_cast<utf8proc_ssize_t>(found.size()), UTF8PROC_DECOMPOSE, &boundary);
  const auto most = static_cast<std::size_t>(std::max<utf8proc_ssize_t>(count, 0));
  for (std::size_t part = 0; part < most; ++part) parts[part] = static_cast<char32_t>(found[part]);
  return most;
}

char32_t CodePointNormalizer::lower_case(char32_t codepoint) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(codepoint)));
}

void CodePointNormalizer::sort_marks(char32_t* first, char32_t* last) {
  for (char32_t* mark = first == last ? last : first + 1; mark < last; ++mark) {
    for (char32_t* at = mark; at > first; --at) {
      if (combining_class(at[-1]) <= combining_class(at[0])) break;
      std::swap(at[-1], at[0]);
    }
  }
}

std::string normalize(std::string_view text, const TokenizerOptions& options) {
  const CodePointNormalizer normalizer(options);
  std::u32string marks;  // that may yet be put in order
  std::string out;
  out.reserve(text.size());
  const auto flush = [&] {
    // A run that is longer than any word is left as it is: its order costs the square of its length.
    if (normalizer.strips() && marks.size() <= kLongestWord) {
      CodePointNormalizer::sort_marks(marks.data(), marks.data() + marks.size());
    }
    for (const char32_t mark : marks) append_utf8(out, mark);
    marks.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const char32_t codepoint = next_code_point(text, at);
    if (options.clean_text && is_removed(codepoint)) continue;
    const bool apart = options.split_ideographs && is_ideograph(codepoint);
    if (apart || is_white_space(codepoint)) flush();
    if (options.clean_text && is_white_space(codepoint)) {
      out += ' ';
      continue;
    }
    if (apart) out += ' ';
    static_cast<void>(normalizer.apply(
        codepoint, flush,
        [&](char32_t part) {
          marks += part;
          return true;
        },
        flush));
    if (!normalizer.strips() || apart) flush();
    if (apart) out += ' ';
  }
  flush();
  return out;
}

}  // namespace headlight::models
