#include "models/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "models/normalizer.h"
#include "models/utf8.h"

namespace headlight::models {
namespace {

// What a regular expression of Unicode calls \w: Alphabetic, marks, decimal digits, connectors, joiners.
bool is_word_character(char32_t codepoint) {
  const auto within = [codepoint](char32_t first, char32_t last) { return first <= codepoint && codepoint <= last; };
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(codepoint))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:  // letters in circles and squares are symbols, and Alphabetic
      return within(0x200C, 0x200D) || within(0x24B6, 0x24E9) || within(0x1F130, 0x1F149) || within(0x1F150, 0x1F169) ||
             within(0x1F170, 0x1F189);
  }
}

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

void AddedTokens::add(std::string content, const AddedToken& token) {
  entries_.push_back({std::move(content), token.id, token.single_word, token.lstrip, token.rstrip});
}

std::optional<std::string> AddedTokens::sort() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.content < b.content; });
  first_.fill(0);
  for (const Entry& entry : entries_) ++first_[static_cast<unsigned char>(entry.content[0]) + std::size_t{1}];
  for (std::size_t byte = 1; byte < first_.size(); ++byte) first_[byte] += first_[byte - 1];
  const auto twice = std::adjacent_find(entries_.begin(), entries_.end(),
                                        [](const Entry& a, const Entry& b) { return a.content == b.content; });
  return twice == entries_.end() ? std::nullopt : std::optional(twice->content);
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
    Match match{at_, at_ + found->content.size(), found->id};
    at_ = match.end - 1;
    const bool apart = !ends_with_word(text_.substr(0, match.begin)) && !begins_with_word(text_.substr(match.end));
    if (found->single_word && !apart) continue;
    at_ = match.end;
    if (found->lstrip) match.begin = space_before(text_, taken_, match.begin);
    if (found->rstrip) match.end = space_behind(text_, match.end);
    // What the white space behind an earlier match took may have held the beginning of this one.
    match.begin = std::max(match.begin, taken_);
    match.end = std::max(match.end, taken_);
    taken_ = match.end;
    return match;
  }
  return {};
}

}  // namespace headlight::models
