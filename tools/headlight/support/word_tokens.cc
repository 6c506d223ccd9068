#include "tools/headlight/support/word_tokens.h"

#include <algorithm>
#include <limits>

#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/model_network.h"

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
      const std::string_view token = tokenizer_.find_token(ids_[static_cast<std::size_t>(next_)]);
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

namespace {

// Whether a text has nothing but marks.
bool is_marks(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_mark); }

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Where words begin among the tokens of a text: a token's part of it is what it makes the text longer by.
std::vector<std::int64_t> beginnings(const models::TextEncoder& model, std::span<const std::int64_t> ids) {
  std::vector<std::int64_t> first;
  std::string before;
  bool after_marks = true;
  for (std::size_t token = 0; token < ids.size(); ++token) {
    const std::string all = model.decode(ids.first(token + 1));
    const std::string part = all.starts_with(before) ? all.substr(before.size()) : all;
    const bool marks = is_marks(without_spaces(part));
    if (token == 0 || after_marks || marks || (!part.empty() && is_space(part.front()))) {
      first.push_back(static_cast<std::int64_t>(token));
    }
    // A space by itself begins a word that goes on.
    after_marks = marks;
    before = all;
  }
  return first;
}

}  // namespace

std::vector<WordTokens> words_of(const models::TextEncoder& model, std::string_view text,
                                 std::span<const std::int64_t> ids, bool pieces) {
  if (model.has_tokenizer()) return words_of(model.tokenizer(), text, ids, pieces);
  const auto count = static_cast<std::int64_t>(ids.size());
  const TokensAround around = tokens_around(model);
  const std::int64_t begin = std::min(around.before, count), end = std::max(begin, count - around.behind);
  std::vector<WordTokens> words;
  const auto add_tokens = [&](std::int64_t from, std::int64_t to, bool special) {
    for (; from < to; ++from)
      words.push_back({{std::string(*model.token(ids[static_cast<std::size_t>(from)])), special}, from, from + 1});
  };
  add_tokens(0, begin, true);
  if (pieces) {
    add_tokens(begin, end, false);
  } else {
    const std::span<const std::int64_t> inner =
        ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    std::vector<std::int64_t> first = beginnings(model, inner);
    first.push_back(end - begin);
    for (std::size_t word = 0; word + 1 < first.size(); ++word) {
      const auto some =
          inner.subspan(static_cast<std::size_t>(first[word]), static_cast<std::size_t>(first[word + 1] - first[word]));
      words.push_back(
          {{std::string(without_spaces(model.decode(some))), false}, begin + first[word], begin + first[word + 1]});
    }
  }
  add_tokens(end, count, true);
  return words;
}

}  // namespace headlight::program
