// BERT's WordPiece tokenizer, with the exact behaviour of the published one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headlight/export.h"

namespace headlight::text {
struct Scratch;
}

namespace headlight::models {

// A token that is looked for in the text, before the rest becomes words and pieces, as Hugging Face's AddedToken is: of
// those that begin first the longest, found from the left.
struct AddedToken {
  std::string content;       // at most 1,024 bytes
  std::int64_t id = 0;       // what stands for it
  bool single_word = false;  // not where a letter, mark, digit or connector (\w) stands right before or behind it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
  // Looked for in what cleaning, accents and case leave of the text, spelt as they leave it; else in the text as it is.
  bool normalized = false;
  bool special = true;  // of no effect here; tools that write text leave special tokens out
};

// As the files of a folder name them: tokenizer_config.json (do_lower_case, strip_accents, tokenize_chinese_chars, and
// the names of tokens), tokenizer.json (clean_text, continuing_subword_prefix, max_input_chars_per_word).
struct TokenizerOptions {
  bool lower_case = true;  // letters become lower-case ones
  // Unset: as lower_case.
  std::optional<bool> strip_accents{};
  bool split_ideographs = true;
  // For a vocabulary of whole words rather than pieces: the longest words from the left, marks and apostrophes within
  // them as the vocabulary spells them, ideographs with no spaces between; a word of letters ends only where the
  // letters do. What no word begins is [UNK], up to the next space, mark or ideograph. (whole_words, a key of our own)
  bool whole_words = false;
  // Controls, U+FFFD and private use go, and white space of every kind is a space.
  bool clean_text = true;
  std::string subword_prefix{"##"};  // of pieces that go on inside a word
  std::int64_t longest_word = 100;   // code points; longer words are unknown. 1 to 100
  std::string unk_token{"[UNK]"}, cls_token{"[CLS]"}, sep_token{"[SEP]"};
  std::string pad_token{"[PAD]"};    // empty: there is none
  std::string mask_token{"[MASK]"};  // may be missing from the vocabulary
  // Of two texts as one sequence: whether the tokens of the second have the type 1, and not 0. (model_input_names)
  bool token_types = true;
  // Unset: those five, where the vocabulary has them.
  std::optional<std::vector<AddedToken>> added_tokens{};
};

// Text → token ids: added tokens found in the raw text, clean-up, accents, case, ideographs, punctuation (Hugging
// Face's BertNormalizer and BertPreTokenizer), then the longest pieces of the vocabulary from the left, "##" marking
// the inside of a word; a word that cannot be built, or of more than 100 code points, is [UNK]. (Devlin et al. 2019; Wu
// et al. 2016) Immutable; copies share the vocabulary; any number of threads may use one.
class HEADLIGHT_API Tokenizer {
 public:
  // One token a line, its id the number of the line from 0. A byte-order mark and carriage returns before line ends are
  // ignored; an empty line is a token that no text holds; of a repeated token the last line counts, as in the published
  // loaders. Throws FileError when the file cannot be read, is not UTF-8, has more than 2²¹ lines or 32 MiB, or lacks
  // one of [PAD], [UNK], [CLS], [SEP]; and for added tokens that are too long, have an id outside 0 … 2²¹ − 1, or are
  // the same as another when normalised.
  static Tokenizer read(const std::string& path, const TokenizerOptions& options = {});

  // The same from memory; `source` names it in errors. Throws std::invalid_argument for more than 2²¹ tokens, or more
  // than 32 MiB of them.
  Tokenizer(std::vector<std::string> vocabulary, const TokenizerOptions& options = {},
            std::string_view source = "vocabulary");

  // [CLS], the tokens of `text`, [SEP]: at most max_length (≥ 2) ids, text beyond them is cut off.
  // Throws std::invalid_argument when the text is not UTF-8, naming the byte, or max_length < 2.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text, std::int64_t max_length) const;
  // The same behind what `ids` holds; allocates nothing where that has room for max_length and a word's pieces more,
  // but for what normalising makes of the text, as far as it is read, where an added token is `normalized`.
  void append(std::string_view text, std::int64_t max_length, std::vector<std::int64_t>& ids) const;
  // Internal: in memory that the caller keeps.
  void append(std::string_view text, std::int64_t max_length, text::Scratch& scratch,
              std::vector<std::int64_t>& ids) const;

  // Throws as they do where the text is not UTF-8.
  static void check(std::string_view text);

  // The token of an id in [0, size()): "[CLS]", "street", "##s", an added token. It becomes a string when it is first
  // asked for, which stays as long as a copy of this, and each call takes a lock: where a view will do, find_token()
  // is cheaper. Both throw std::invalid_argument for another id.
  [[nodiscard]] const std::string& token(std::int64_t id) const;
  // The same where it lies, with a zero byte behind it, as long as a copy of this lives.
  [[nodiscard]] std::string_view find_token(std::int64_t id) const;
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const;
  [[nodiscard]] std::int64_t size() const noexcept;
  [[nodiscard]] std::int64_t pad_id() const noexcept;  // −1 without a pad_token
  [[nodiscard]] std::int64_t unknown_id() const noexcept;
  // The pieces by id, without tokens that were added behind them. They become strings when they are asked for first,
  // which stay as long as a copy of this.
  [[nodiscard]] const std::vector<std::string>& vocabulary() const;
  [[nodiscard]] const TokenizerOptions& options() const noexcept;

 private:
  friend struct TokenizerFiles;
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace headlight::models
