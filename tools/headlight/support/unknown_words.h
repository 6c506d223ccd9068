// What a model does not see of texts: words that it has no token for, which are all the same [UNK] to it, and what lies
// behind the tokens that it takes. Whoever asks about them is told.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "tools/headlight/support/text_source.h"

namespace headlight::program {

class UnknownWords {
 public:
  explicit UnknownWords(const models::TextEncoder& model) : model_(model) {}

  // Of a text, whose first `most` tokens the model takes.
  void add(std::string_view text, std::int64_t most);
  void add(std::string_view text) { add(text, model_.options().max_length); }
  // Of all texts, from the first one on.
  void add(TextSource& texts);

  // The most tokens of a text so far, [CLS] and [SEP] included.
  [[nodiscard]] std::int64_t longest() const noexcept { return longest_; }

  // The most tokens of a text that the model takes, beside [CLS] and [SEP].
  [[nodiscard]] std::int64_t most() const noexcept { return std::max(most_ - 2, std::int64_t{0}); }

  // Texts that have more tokens than the model takes.
  [[nodiscard]] std::int64_t cut() const noexcept { return cut_; }

  // The first few as a list in quotes, each once; empty where all are known.
  [[nodiscard]] std::string names() const;

  // One line on standard error that counts them, each once, and names the first few; nothing where all are known. The
  // demonstration model's says how to see its words.
  void warn(bool is_demonstration) const;

  // A line on standard error for texts that were cut, and one for those without a word.
  void warn_of_texts() const;

 private:
  const models::TextEncoder& model_;
  std::int64_t longest_ = 0;
  std::int64_t most_ = 0, cut_ = 0, empty_ = 0;
  std::vector<std::string> first_;
  // Of all, so that a book in another language takes little, up to a bound, so that no library of them takes much;
  // sorted, so that no choice of words takes long.
  std::set<std::size_t> hashes_;
  bool uncounted_ = false;  // there are more than the bound
};

}  // namespace headlight::program
