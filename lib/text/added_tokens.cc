#include "text/added_tokens.h"

#include <algorithm>
#include <numeric>
#include <utility>

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
  std::vector<std::uint32_t> places(tokens_.size());
  std::iota(places.begin(), places.end(), 0U);
  std::sort(places.begin(), places.end(),
            [this](std::uint32_t a, std::uint32_t b) { return contents_[a] < contents_[b]; });
  AddedTokens sorted;
  std::size_t bytes = 0;
  for (const std::uint32_t place : places) bytes += contents_[place].size();
  sorted.reserve(places.size(), bytes);
  for (const std::uint32_t place : places) sorted.add(contents_[place], tokens_[place]);
  *this = std::move(sorted);
  std::optional<std::string> twice;
  for (std::uint32_t place = 0; place < contents_.size(); ++place) {
    ++first_[static_cast<unsigned char>(contents_[place][0]) + std::size_t{1}];
    if (!twice && place > 0 && contents_[place - 1] == contents_[place]) twice = contents_[place];
  }
  for (std::size_t byte = 1; byte < first_.size(); ++byte) first_[byte] += first_[byte - 1];
  return twice;
}

bool AddedTokens::may_cross(std::string_view space) const {
  for (std::uint32_t place = 0; place < contents_.size(); ++place) {
    const std::string_view content = contents_[place];
    for (std::size_t at = content.find(space, 1); at < content.size(); at = content.find(space, at + 1)) {
      if (!has_no_letters(content.substr(0, at))) return true;
    }
  }
  return false;
}

std::uint32_t AddedTokens::find(std::string_view text) const noexcept {
  const auto byte = static_cast<unsigned char>(text[0]);
  std::uint32_t begin = first_[byte], end = first_[byte + std::size_t{1}];
  std::uint32_t longest = kNone;
  for (std::size_t size = 1; begin != end; ++size) {  // all of them share the first `size` bytes with the text
    if (contents_[begin].size() == size) longest = begin++;
    if (size == text.size()) break;
    const auto next = static_cast<unsigned char>(text[size]);
    // The first of them whose next byte is not below, or not up to, the text's.
    const auto place_of = [&](std::uint32_t from, bool behind) {
      std::uint32_t last = end;
      while (from < last) {
        const std::uint32_t middle = from + (last - from) / 2;
        const auto there = static_cast<unsigned char>(contents_[middle][size]);
        if (there < next || (behind && there == next)) {
          from = middle + 1;
        } else {
          last = middle;
        }
      }
      return from;
    };
    begin = place_of(begin, false);
    end = place_of(begin, true);
  }
  return longest;
}

AddedTokens::Match AddedTokens::Search::next() {
  for (; at_ < text_.size(); ++at_) {
    const std::uint32_t found = tokens_.find(text_.substr(at_));
    if (found == kNone) continue;
    const Token& token = tokens_.tokens_[found];
    Match match{at_, at_ + tokens_.contents_[found].size(), token.id};
    at_ = match.end - 1;
    const bool apart = !ends_with_word(text_.substr(0, match.begin)) && !begins_with_word(text_.substr(match.end));
    if (token.single_word && !apart) continue;
    at_ = match.end;
    if (token.lstrip) match.begin = space_before(text_, taken_, match.begin);
    // From where an earlier match has looked for white space: the time is linear in the text.
    if (token.rstrip) match.end = space_behind(text_, std::max(match.end, taken_));
    // What the white space behind an earlier match took may have held the beginning of this one.
    match.begin = std::max(match.begin, taken_);
    match.end = std::max(match.end, taken_);
    taken_ = match.end;
    return match;
  }
  return {};
}

}  // namespace headlight::text
