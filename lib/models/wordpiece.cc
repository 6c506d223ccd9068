#include "models/wordpiece.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "models/basic_tokenizer.h"

namespace headlight::models {

void WordPiece::Table::sort() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.token < b.token; });
  std::size_t kept = 0;
  for (const Entry& entry : entries_) {
    if (kept > 0 && entries_[kept - 1].token == entry.token) --kept;
    entries_[kept++] = entry;
  }
  entries_.resize(kept);
  first_.assign(kBeginnings + 1, 0);
  for (const Entry& entry : entries_) ++first_[beginning_of(entry.token) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
}

std::optional<std::int64_t> WordPiece::Table::find(std::string_view token) const noexcept {
  const std::size_t beginning = beginning_of(token);
  const auto last = entries_.begin() + first_[beginning + 1];
  const auto found = std::lower_bound(entries_.begin() + first_[beginning], last, token,
                                      [](const Entry& entry, std::string_view wanted) { return entry.token < wanted; });
  if (found == last || found->token != token) return std::nullopt;
  return found->id;
}

WordPiece::WordPiece(std::vector<std::string> vocabulary, std::string_view prefix, std::size_t longest_word)
    : vocabulary_(std::move(vocabulary)), longest_word_(std::min(longest_word, kLongestWord)) {
  for (std::size_t line = 0; line < vocabulary_.size(); ++line) {
    const std::string_view token = vocabulary_[line];
    const auto number = static_cast<std::int64_t>(line);
    tokens_.add(token, number);
    if (token.starts_with(prefix)) insides_.add(token.substr(prefix.size()), number);
    longest_ = std::max(longest_, token.size());
  }
  tokens_.sort();
  insides_.sort();
}

std::optional<std::int64_t> WordPiece::id(std::string_view token) const { return tokens_.find(token); }

void WordPiece::append(std::u32string_view word, std::int64_t unknown, std::vector<std::int64_t>& ids) const {
  if (word.size() > longest_word_) return ids.push_back(unknown);
  std::array<utf8proc_uint8_t, 4 * kLongestWord> utf8{};
  std::array<std::size_t, kLongestWord + 1> ends{};  // where code point n begins
  for (std::size_t n = 0; n < word.size(); ++n) {
    const auto width = utf8proc_encode_char(static_cast<utf8proc_int32_t>(word[n]), utf8.data() + ends[n]);
    ends[n + 1] = ends[n] + static_cast<std::size_t>(width);
  }
  const std::string_view bytes(reinterpret_cast<const char*>(utf8.data()), ends[word.size()]);
  const std::size_t ids_before = ids.size();
  for (std::size_t begin = 0; begin < word.size();) {
    const Table& table = begin == 0 ? tokens_ : insides_;
    std::size_t end = word.size();
    while (end > begin && ends[end] - ends[begin] > longest_) --end;
    std::optional<std::int64_t> found;
    for (; end > begin; --end) {
      found = table.find(bytes.substr(ends[begin], ends[end] - ends[begin]));
      if (found) break;
    }
    if (!found) {
      ids.resize(ids_before);
      return ids.push_back(unknown);
    }
    ids.push_back(*found);
    begin = end;
  }
}

}  // namespace headlight::models
