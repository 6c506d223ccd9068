// The first half of BERT's tokenizer: from text to words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headlight/models/tokenizer.h"
#include "text/characters.h"

namespace headlight::models {

// Takes words as they come out of a text. Both calls return whether more are wanted.
class WordSink {
 public:
  virtual ~WordSink() = default;
  // The code points of a word; of one with more than kLongestWord the first kLongestWord + 1.
  virtual bool take_word(std::u32string_view word) = 0;
  // In place of words, with whole_words: what lies between two spaces, a part at a time. It may be left from `taken` on
  // (which is 0 when it is called), and comes again with what follows; but for the last part, after which it `ends`, as
  // few as kLongestWord code points may be.
  virtual bool take_chunk(std::u32string_view part, bool ends, std::size_t& taken) = 0;
};

// Of more code points no vocabulary has a word: such a one is unknown. (published as max_input_chars_per_word)
inline constexpr std::size_t kLongestWord = 100;

// Cleans (controls, U+FFFD and private use go, every white space is a space), sets ideographs apart, strips accents
// (canonical decomposition without nonspacing marks), lower-cases, and splits at spaces and around every punctuation
// mark, as Hugging Face's BertNormalizer and BertPreTokenizer do; with whole_words at spaces alone. `text` must be
// UTF-8. Takes no memory, however long words are. Returns false when `sink` asked to stop.
bool split_words(std::string_view text, const TokenizerOptions& options, WordSink& sink);

using text::is_ideograph;
using text::is_punctuation;

// The second half of it, of what normalize() has made; not for whole_words.
bool split_normalized(std::string_view text, const TokenizerOptions& options, WordSink& sink);

}  // namespace headlight::models
