#include "text/added_tokens.h"

#include <algorithm>

#include "text/characters.h"
#include "text/cut.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

bool ends_with_word(std::string_view text) {
  std::size_t at = text.size();
  return at > 0 && is_word_character(previous_code_point(text, at));
}

bool begins_with_word(std::string_view text) {
  std::size_t at = 0;
  return !text.empty() && is_word_character(next_code_point(text, at));
}

// Where the white space before `end` begins, from `begin` on.
std::size_t space_before(std::string_view text, std::size_t begin, std::size_t end) {
  while (end > begin) {
    std::size_t at = end;
    if (!is_white_space(previous_code_point(text, at))) break;
    end = at;
  }
  return std::max(begin, end);
}

// Where the white space from `begin` on ends.
std::size_t space_behind(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    std::size_t at = begin;
    if (!is_white_space(next_code_point(text, at))) break;
    begin = at;
  }
  return begin;
}

}  // namespace

std::optional<std::string> AddedTokens::sort() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.content < b.content; });
  first_.fill(0);
  for (const Entry& entry : entries_) ++first_[static_cast<unsigned char>(entry.content[0]) + std::size_t{1}];
  for (std::size_t byte = 1; byte < first_.size(); ++byte) first_[byte] += first_[byte - 1];
  const auto twice = std::adjacent_find(entries_.begin(), entries_.end(),
                                        [](const Entry& a, const Entry& b) { return a.content == b.content; });
  return twice == entries_.end() ? std::nullopt : std::optional(twice->content);
}

bool AddedTokens::may_cross(std::string_view space) const {
  return std::any_of(entries_.begin(), entries_.end(), [space](const Entry& entry) {
    const std::string_view content = entry.content;
    for (std::size_t at = content.find(space, 1); at < content.size(); at = content.find(space, at + 1)) {
      if (!has_no_letters(content.substr(0, at))) return true;
    }
    return false;
  });
}

const AddedTokens::Entry* AddedTokens::find(std::string_view text) const noexcept {
  const auto byte = static_cast<unsigned char>(text[0]);
  auto begin = entries_.begin() + first_[byte];
  auto end = entries_.begin() + first_[byte + std::size_t{1}];
  const Entry* longest = nullptr;
  for (std::size_t size = 1; begin != end; ++size) {  // all of them share the first `size` bytes with the text
    if (begin->content.size() == size) longest = &*begin++;
    if (size == text.size()) break;
    const auto next = static_cast<unsigned char>(text[size]);
    const auto byte_of = [size](const Entry& entry) { return static_cast<unsigned char>(entry.content[size]); };
    begin = std::partition_point(begin, end, [&](const Entry& entry) { return byte_of(entry) < next; });
    end = std::partition_point(begin, end, [&](const Entry& entry) { return byte_of(entry) == next; });
  }
  return longest;
}

AddedTokens::Match AddedTokens::Search::next() {
  for (; at_ < text_.size(); ++at_) {
    const Entry* const found = tokens_.find(text_.substr(at_));
    if (found == nullptr) continue;
    Match match{at_, at_ + found->content.size(), found->token.id};
    at_ = match.end - 1;
    const bool apart = !ends_with_word(text_.substr(0, match.begin)) && !begins_with_word(text_.substr(match.end));
    if (found->token.single_word && !apart) continue;
    at_ = match.end;
    if (found->token.lstrip) match.begin = space_before(text_, taken_, match.begin);
    // From where an earlier match has looked for white space: the time is linear in the text.
    if (found->token.rstrip) match.end = space_behind(text_, std::max(match.end, taken_));
    // What the white space behind an earlier match took may have held the beginning of this one.
    match.begin = std::max(match.begin, taken_);
    match.end = std::max(match.end, taken_);
    taken_ = match.end;
    return match;
  }
  return {};
}

}  // namespace headlight::text
