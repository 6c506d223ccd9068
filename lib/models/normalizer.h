// What BERT's tokenizer makes of a text before it looks for words: clean-up, accents, case (Hugging Face's
// BertNormalizer).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "headlight/models/tokenizer.h"
#include "text/characters.h"

namespace headlight::models {

using text::is_removed;
using text::is_white_space;

// The canonical decomposition of a code point, or itself, with accents (nonspacing marks) left out and letters
// lower-cased, as the options say.
class CodePointNormalizer {
 public:
  explicit CodePointNormalizer(const TokenizerOptions& options)
      : strips_(options.strip_accents.value_or(options.lower_case)), lowers_(options.lower_case) {}

  [[nodiscard]] bool strips() const noexcept { return strips_; }

  // Calls begin() before a part that marks are put in order behind (only where accents are stripped), take(part) for
  // each part until it returns false, and end() behind such a part. Returns what the last take() did.
  template <class Begin, class Take, class End>
  bool apply(char32_t codepoint, Begin begin, Take take, End end) const {
    if (!strips_) return lower(codepoint, take);
    char32_t parts[kMostParts];
    const std::size_t count = decompose(codepoint, parts);
    for (std::size_t part = 0; part < count; ++part) {
      const bool is_base = combining_class(parts[part]) == 0;
      if (is_base) begin();
      if (text::is_stripped_mark(parts[part])) continue;
      if (!lower(parts[part], take)) return false;
      if (is_base) end();
    }
    return true;
  }

  // Puts marks from `first` on into canonical order. Nonspacing ones are gone by then, so they are few, or the word is
  // too long for its order to matter.
  static void sort_marks(char32_t* first, char32_t* last);

 private:
  static constexpr std::size_t kMostParts = 8;  // no canonical decomposition has more than 4

  [[nodiscard]] static std::size_t decompose(char32_t codepoint, char32_t* parts);
  [[nodiscard]] static int combining_class(char32_t codepoint);
  [[nodiscard]] static char32_t lower_case(char32_t codepoint);

  // Lower-cases code point by code point and without context, so Σ is σ at the end of a word too; only İ becomes two.
  template <class Take>
  bool lower(char32_t codepoint, Take take) const {
    if (!lowers_) return take(codepoint);
    if (codepoint == U'\u0130') return take(U'i') && take(U'\u0307');
    return take(lower_case(codepoint));
  }

  bool strips_, lowers_;
};

// The whole of `text`, which must be UTF-8, as normalised UTF-8: what added tokens that are `normalized` are found in,
// and what split_normalized() takes.
[[nodiscard]] std::string normalize(std::string_view text, const TokenizerOptions& options);

}  // namespace headlight::models
