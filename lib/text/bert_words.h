// From text to words as BERT's tokenizer has them: its normalizer and its pre-tokenizer, in one walk.
#pragma once

#include <cstddef>
#include <string_view>

namespace headlight::text {

// What Hugging Face's BertNormalizer does.
struct BertRules {
  bool cleans = true;      // controls, U+FFFD and private use go, every white space is a space
  bool sets_apart = true;  // ideographs, by spaces
  bool strips = true;      // accents: canonical decomposition without nonspacing marks
  bool lowers = true;      // letters

  friend bool operator==(const BertRules&, const BertRules&) = default;
};

// Of more code points no vocabulary has a word: such a one is unknown. (published as max_input_chars_per_word)
inline constexpr std::size_t kLongestWord = 100;

// Takes words as they come out of a text. Both calls return whether more are wanted.
class WordSink {
 public:
  virtual ~WordSink() = default;
  // A word in UTF-8, and how many code points it has; of one with more than kLongestWord the first kLongestWord + 1.
  virtual bool take_word(std::string_view word, std::size_t code_points) = 0;
  // In place of words, where whole chunks are wanted: what lies between two spaces, a part at a time. It may be left
  // from `taken` on (which is 0 when it is called), and comes again with what follows; but for the last part, after
  // which it `ends`, as few as kLongestWord code points may be.
  virtual bool take_chunk(std::u32string_view part, bool ends, std::size_t& taken) = 0;
};

// Follows the rules, and splits at spaces and around every punctuation mark, as BertPreTokenizer does; with `chunks` at
// spaces alone. `text` must be UTF-8. Takes no memory, however long words are. Returns false when `sink` asked to stop.
bool split_words(std::string_view text, const BertRules& rules, bool chunks, WordSink& sink);

// The words of a text that has been normalised: splits at white space and around every punctuation mark. Words are
// whole, however long. Returns false when `sink` asked to stop, and reads no further than that.
bool split_normalized(std::string_view text, WordSink& sink);

}  // namespace headlight::text
