#include "models/text_tokenizer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "text/pair_lengths.h"

namespace headlight::models {
namespace {

// [CLS] text [SEP]; [CLS] first [SEP] second [SEP].
class BertTokenizer : public TextTokenizer {
 public:
  explicit BertTokenizer(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  void append(std::string_view text, std::int64_t max_length, std::vector<std::int64_t>& ids) const override {
    tokenizer_.append(text, max_length, ids);
  }
  void append_pair(std::string_view first, std::string_view second, std::int64_t max_length,
                   std::vector<std::int64_t>& ids, std::vector<std::int64_t>& types) const override {
    const std::vector<std::int64_t> one = all_of("first", first), two = all_of("second", second);
    const auto [n1, n2] = text::pair_lengths(static_cast<std::int64_t>(one.size()) - 2,
                                             static_cast<std::int64_t>(two.size()) - 2, max_length - 3);
    ids.insert(ids.end(), one.begin(), one.begin() + 1 + n1);
    ids.push_back(one.back());
    types.insert(types.end(), static_cast<std::size_t>(n1) + 2, 0);
    ids.insert(ids.end(), two.begin() + 1, two.begin() + 1 + n2);
    ids.push_back(one.back());
    types.insert(types.end(), static_cast<std::size_t>(n2) + 1, 1);
  }
  std::int64_t tokens_behind() const noexcept override { return 1; }
  std::int64_t tokens_around(bool pair) const noexcept override { return pair ? 3 : 2; }
  std::int64_t size() const noexcept override { return tokenizer_.size(); }
  const std::string* token(std::int64_t id) const override {
    return id < 0 || id >= tokenizer_.size() ? nullptr : &tokenizer_.token(id);
  }
  std::optional<std::int64_t> id(std::string_view token) const override { return tokenizer_.id(token); }
  const Tokenizer* bert() const noexcept override { return &tokenizer_; }

  // Pieces of a word together, words with spaces between, special tokens as they are.
  std::string decode(std::span<const std::int64_t> ids) const override {
    const std::string& inside = tokenizer_.options().subword_prefix;
    std::string words;
    for (const std::int64_t id : ids) {
      std::string_view token = tokenizer_.token(id);
      if (token.starts_with(inside) && token.size() > inside.size()) {
        token.remove_prefix(inside.size());
      } else if (!words.empty()) {
        words += ' ';
      }
      words += token;
    }
    return words;
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> all_of(const char* which, std::string_view text) const {
    try {
      return tokenizer_.encode(text, INT64_MAX);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string(which) + ": " + error.what());
    }
  }

  Tokenizer tokenizer_;
};

class FileTokenizer : public TextTokenizer {
 public:
  FileTokenizer(text::Tokenizer tokenizer, bool types) : tokenizer_(std::move(tokenizer)), types_(types) {}

  void append(std::string_view text, std::int64_t max_length, std::vector<std::int64_t>& ids) const override {
    const std::vector<std::int64_t> found = tokenizer_.encode_within(text, max_length);
    ids.insert(ids.end(), found.begin(), found.end());
  }
  void append_pair(std::string_view first, std::string_view second, std::int64_t max_length,
                   std::vector<std::int64_t>& ids, std::vector<std::int64_t>& types) const override {
    const text::TokenPair pair = tokenizer_.encode_pair_within(first, second, max_length);
    ids.insert(ids.end(), pair.ids.begin(), pair.ids.end());
    if (types_) {
      types.insert(types.end(), pair.types.begin(), pair.types.end());
    } else {
      types.insert(types.end(), pair.ids.size(), 0);
    }
  }
  std::int64_t tokens_behind() const noexcept override { return tokenizer_.tokens_around().behind; }
  std::int64_t tokens_around(bool pair) const noexcept override {
    const text::TokensAround around = tokenizer_.tokens_around();
    return pair ? around.pair : around.text;
  }
  std::int64_t size() const noexcept override { return tokenizer_.size(); }
  const std::string* token(std::int64_t id) const override { return tokenizer_.find_token(id); }
  std::optional<std::int64_t> id(std::string_view token) const override { return tokenizer_.id(token); }
  std::string decode(std::span<const std::int64_t> ids) const override {
    return tokenizer_.decode({ids.begin(), ids.end()});
  }

 private:
  text::Tokenizer tokenizer_;
  bool types_;
};

}  // namespace

std::unique_ptr<TextTokenizer> make_text_tokenizer(Tokenizer tokenizer) {
  return std::make_unique<BertTokenizer>(std::move(tokenizer));
}
std::unique_ptr<TextTokenizer> make_text_tokenizer(text::Tokenizer tokenizer, bool types) {
  return std::make_unique<FileTokenizer>(std::move(tokenizer), types);
}

}  // namespace headlight::models
