#include "models/tokenizers/text_tokenizer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "text/pair_lengths.h"

namespace headlight::models {
namespace {

// What a byte takes where no token must end. What grows by doubling may have twice what it needs, and the old memory
// beside the new one while it does.
constexpr std::int64_t kDoubled = 2, kWhileDoubling = 3;
// Two strings of up to three bytes a byte, and characters.
constexpr std::int64_t kNormalizing = kDoubled * (2 * 3 + 4);
constexpr std::int64_t kIds = kWhileDoubling * 8;
// Four lists, one of them of two numbers, and a queue of up to two pairs for each.
constexpr std::int64_t kBpe = 5 * 4 + kWhileDoubling * 2 * 8;
// Of up to three bytes a byte: scores, where tokens begin, which they are, and where they end.
constexpr std::int64_t kUnigram = 3 * (8 + 4 + 4 + kWhileDoubling * 4);

// [CLS] text [SEP]; [CLS] first [SEP] second [SEP].
class BertTokenizer : public TextTokenizer {
 public:
  explicit BertTokenizer(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  void append(std::string_view text, std::int64_t max_length, text::Scratch& scratch,
              std::vector<std::int64_t>& ids) const override {
    tokenizer_.append(text, max_length, scratch, ids);
  }
  void append_pair(std::string_view first, std::string_view second, std::int64_t max_length, text::Scratch& scratch,
                   std::vector<std::int64_t>& ids, std::vector<std::int64_t>& types) const override {
    std::vector<std::int64_t>&one = scratch.first, &two = scratch.second;
    const std::int64_t room = max_length - 3;
    // Of two texts that are both too long the longer one gets the odd token: then the shorter one is needed to its end.
    for (std::int64_t enough = room + 1;; enough *= 4) {
      append_first("first", first, enough, scratch, one);
      append_first("second", second, enough, scratch, two);
      if (room % 2 == 0 || std::min(std::ssize(one), std::ssize(two)) - 2 < enough) break;
    }
    const auto [n1, n2] = text::pair_lengths(std::ssize(one) - 2, std::ssize(two) - 2, room);
    ids.insert(ids.end(), one.begin(), one.begin() + 1 + n1);
    ids.push_back(one.back());
    types.insert(types.end(), static_cast<std::size_t>(n1) + 2, 0);
    ids.insert(ids.end(), two.begin() + 1, two.begin() + 1 + n2);
    ids.push_back(one.back());
    types.insert(types.end(), static_cast<std::size_t>(n2) + 1, tokenizer_.options().token_types ? 1 : 0);
  }
  std::int64_t tokens_behind() const noexcept override { return 1; }
  std::int64_t tokens_around(bool pair) const noexcept override { return pair ? 3 : 2; }
  std::int64_t size() const noexcept override { return tokenizer_.size(); }
  std::optional<std::string_view> token(std::int64_t id) const override {
    return id < 0 || id >= tokenizer_.size() ? std::nullopt : std::optional(tokenizer_.find_token(id));
  }
  std::optional<std::int64_t> id(std::string_view token) const override { return tokenizer_.id(token); }
  // Words come one by one, but where tokens are looked for in what normalizing leaves.
  std::int64_t bytes_of_byte() const noexcept override {
    const auto is_normalized = [](const AddedToken& token) { return token.normalized; };
    const auto& added = tokenizer_.options().added_tokens;
    return added && std::any_of(added->begin(), added->end(), is_normalized) ? kNormalizing : 0;
  }
  bool is_special(std::int64_t) const noexcept override { return true; }  // it is [SEP]
  const Tokenizer* bert() const noexcept override { return &tokenizer_; }

  // Pieces of a word together, words with spaces between, special tokens as they are.
  std::string decode(std::span<const std::int64_t> ids) const override {
    const std::string& inside = tokenizer_.options().subword_prefix;
    std::string words;
    for (const std::int64_t id : ids) {
      std::string_view token = tokenizer_.find_token(id);
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
  // [CLS], the first tokens of a text, [SEP].
  void append_first(const char* which, std::string_view text, std::int64_t most, text::Scratch& scratch,
                    std::vector<std::int64_t>& ids) const {
    ids.clear();
    try {
      tokenizer_.append(text, most + 2, scratch, ids);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string(which) + ": " + error.what());
    }
  }

  Tokenizer tokenizer_;
};

class FileTokenizer : public TextTokenizer {
 public:
  FileTokenizer(text::Tokenizer tokenizer, bool types, std::vector<std::int64_t> special)
      : tokenizer_(std::move(tokenizer)), types_(types), special_(std::move(special)) {}

  void append(std::string_view text, std::int64_t max_length, text::Scratch& scratch,
              std::vector<std::int64_t>& ids) const override {
    tokenizer_.append_within(text, max_length, scratch, ids);
  }
  void append_pair(std::string_view first, std::string_view second, std::int64_t max_length, text::Scratch& scratch,
                   std::vector<std::int64_t>& ids, std::vector<std::int64_t>& types) const override {
    const std::size_t before = types.size();
    tokenizer_.append_pair_within(first, second, max_length, scratch, ids, types);
    if (!types_) std::fill(types.begin() + static_cast<std::ptrdiff_t>(before), types.end(), 0);
  }
  std::int64_t tokens_behind() const noexcept override { return tokenizer_.tokens_around().behind; }
  std::int64_t tokens_around(bool pair) const noexcept override {
    const text::TokensAround around = tokenizer_.tokens_around();
    return pair ? around.pair : around.text;
  }
  std::int64_t size() const noexcept override { return tokenizer_.size(); }
  std::optional<std::string_view> token(std::int64_t id) const override { return tokenizer_.find_token(id); }
  std::optional<std::int64_t> id(std::string_view token) const override { return tokenizer_.id(token); }
  std::int64_t bytes_of_byte() const noexcept override { return kNormalizing + kIds + std::max(kBpe, kUnigram); }
  std::string decode(std::span<const std::int64_t> ids) const override {
    return tokenizer_.decode({ids.begin(), ids.end()});
  }
  bool is_special(std::int64_t id) const noexcept override {
    return std::binary_search(special_.begin(), special_.end(), id);
  }

 private:
  text::Tokenizer tokenizer_;
  bool types_;
  std::vector<std::int64_t> special_;
};

}  // namespace

std::unique_ptr<TextTokenizer> make_text_tokenizer(Tokenizer tokenizer) {
  return std::make_unique<BertTokenizer>(std::move(tokenizer));
}
std::unique_ptr<TextTokenizer> make_text_tokenizer(text::Tokenizer tokenizer, bool types,
                                                   std::vector<std::int64_t> special) {
  return std::make_unique<FileTokenizer>(std::move(tokenizer), types, std::move(special));
}

}  // namespace headlight::models
