// BERT's WordPiece tokenizer, with the exact behaviour of the published one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/export.h"

namespace headlight::models {

// As tokenizer_config.json names them: do_lower_case, strip_accents, tokenize_chinese_chars.
struct TokenizerOptions {
  bool lower_case = true;  // letters become lower-case ones
  // Unset: as lower_case.
  std::optional<bool> strip_accents;
  bool split_ideographs = true;
  // For a vocabulary of whole words rather than pieces: the longest words from the left, marks and apostrophes within
  // them as the vocabulary spells them, ideographs with no spaces between; a word of letters ends only where the
  // letters do. What no word begins is [UNK], up to the next space, mark or ideograph. (whole_words, a key of our own)
  bool whole_words = false;
};

// Text → token ids: special tokens found in the raw text, clean-up, accents, case, ideographs, punctuation (Hugging
// Face's BertNormalizer and BertPreTokenizer), then the longest pieces of the vocabulary from the left, "##" marking
// the inside of a word; a word that cannot be built, or of more than 100 code points, is [UNK]. (Devlin et al. 2019; Wu
// et al. 2016) Immutable; copies share the vocabulary; any number of threads may use one.
class HEADLIGHT_API Tokenizer {
 public:
  // One token a line, its id the number of the line from 0. A byte-order mark and carriage returns before line ends are
  // ignored; an empty line is a token that no text holds; of a repeated token the last line counts, as in the published
  // loaders. Throws FileError when the file cannot be read, is not UTF-8, has more than 2²¹ lines or 32 MiB, or lacks
  // one of [PAD], [UNK], [CLS], [SEP].
  static Tokenizer read(const std::string& path, const TokenizerOptions& options = {});

  // The same from memory; `source` names it in errors.
  Tokenizer(std::vector<std::string> vocabulary, const TokenizerOptions& options = {},
            std::string_view source = "vocabulary");

  // [CLS], the tokens of `text`, [SEP]: at most max_length (≥ 2) ids, text beyond them is cut off.
  // Throws std::invalid_argument when the text is not UTF-8, naming the byte, or max_length < 2.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text, std::int64_t max_length) const;
  // The same behind what `ids` holds; allocates nothing where that has room for max_length and a word's pieces more.
  void append(std::string_view text, std::int64_t max_length, std::vector<std::int64_t>& ids) const;

  // Throws as they do where the text is not UTF-8.
  static void check(std::string_view text);

  // The token of an id in [0, size()): "[CLS]", "street", "##s".
  [[nodiscard]] const std::string& token(std::int64_t id) const;
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const;
  [[nodiscard]] std::int64_t size() const noexcept;
  [[nodiscard]] std::int64_t pad_id() const noexcept;
  [[nodiscard]] const TokenizerOptions& options() const noexcept;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace headlight::models
