#include "tools/headlight/support/word_tokens.h"

#include <algorithm>
#include <limits>

#include "tools/headlight/support/display_text.h"

namespace headlight::program {
namespace {

// ASCII punctuation, as BERT's tokenizer has it.
bool is_mark(char letter) {
  return (letter >= '!' && letter <= '/') || (letter >= ':' && letter <= '@') || (letter >= '[' && letter <= '`') ||
         (letter >= '{' && letter <= '~');
}

// What stands between spaces, marks before and behind it apart, each for itself; about `most` of the first, or all.
std::vector<std::string_view> parts_of(std::string_view text, std::size_t most) {
  std::vector<std::string_view> parts;
  std::size_t at = 0;
  while (at < text.size() && parts.size() < most) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    std::size_t last = end;
    while (at < last && is_mark(text[at]) && parts.size() < most) parts.push_back(text.substr(at++, 1));
    while (last > at && is_mark(text[last - 1])) --last;
    if (last > at) parts.push_back(text.substr(at, last - at));
    for (; last < end && parts.size() < most; ++last) parts.push_back(text.substr(last, 1));
    at = end;
  }
  return parts;
}

// The ids of a part alone, without [CLS] and [SEP].
std::vector<std::int64_t> ids_of(const models::Tokenizer& tokenizer, std::string_view part) {
  std::vector<std::int64_t> ids = tokenizer.encode(part, std::numeric_limits<std::int64_t>::max());
  ids.pop_back();
  ids.erase(ids.begin());
  return ids;
}

class WordList {
 public:
  WordList(const models::Tokenizer& tokenizer, std::span<const std::int64_t> ids) : tokenizer_(tokenizer), ids_(ids) {}

  // The next `count` ids as one word, or as many of them as are left.
  void add(std::string_view text, std::int64_t count, bool special = false) {
    const std::int64_t end = std::min(next_ + count, static_cast<std::int64_t>(ids_.size()));
    if (end == next_) return;
    words_.push_back({{std::string(text), special}, next_, end});
    next_ = end;
  }

  // The ids before `end`, a word for each token; with `join` a token that goes on inside a word goes to that.
  void add_tokens(std::int64_t end, bool join) {
    for (const std::int64_t first = next_; next_ < std::min(end, static_cast<std::int64_t>(ids_.size()));) {
      const std::string& token = tokenizer_.token(ids_[static_cast<std::size_t>(next_)]);
      const std::string& inside = tokenizer_.options().subword_prefix;
      if (join && next_ > first && token.starts_with(inside)) {
        words_.back().word.text += token.substr(inside.size());
        words_.back().end = ++next_;
      } else {
        add(token, 1, is_special());
      }
    }
  }

  [[nodiscard]] std::int64_t next() const { return next_; }
  [[nodiscard]] std::vector<WordTokens> take() { return std::move(words_); }

 private:
  [[nodiscard]] bool is_special() const { return next_ == 0 || next_ + 1 == static_cast<std::int64_t>(ids_.size()); }

  const models::Tokenizer& tokenizer_;
  std::span<const std::int64_t> ids_;
  std::int64_t next_ = 0;
  std::vector<WordTokens> words_;
};

}  // namespace

std::vector<WordTokens> words_of(const models::Tokenizer& tokenizer, std::string_view text,
                                 std::span<const std::int64_t> ids, bool pieces) {
  WordList by_tokens(tokenizer, ids);
  const auto count = static_cast<std::int64_t>(ids.size());
  by_tokens.add_tokens(count, !pieces);
  if (pieces) return by_tokens.take();

  WordList words(tokenizer, ids);
  words.add_tokens(1, false);  // [CLS]
  // Hardly any part has no token.
  for (const std::string_view part : parts_of(text, 2 * ids.size() + 64)) {
    if (words.next() + 1 >= count) break;
    const std::vector<std::int64_t> own = ids_of(tokenizer, part);
    const std::size_t there = std::min(own.size(), static_cast<std::size_t>(count - 1 - words.next()));
    // A special token that the text spells out, or a rule that looks further than one part: tokens then.
    if (!std::equal(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(there), ids.begin() + words.next())) {
      return by_tokens.take();
    }
    const auto many = static_cast<std::int64_t>(there);
    if (language_of(part).empty()) {
      words.add(part, many);
    } else {
      words.add_tokens(words.next() + many, true);
    }
  }
  if (words.next() + 1 != count) return by_tokens.take();
  words.add_tokens(count, false);  // [SEP]
  return words.take();
}

}  // namespace headlight::program
