#include "headlight/models/errors.h"
#include "text/characters.h"
#include "text/cut.h"
#include "text/normalizers.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

constexpr std::size_t kLongestContent = 64;

}  // namespace

Replacement::Replacement(const JsonValue& part) {
  expect_keys(part, {"pattern", "content"});
  content_ = needed_string(part, "content");
  if (content_.size() > kLongestContent) part.fail("content", "is too long");
  const auto pattern = part.object("pattern");
  if (!pattern) part.fail("pattern", "is missing, expected an object");
  expect_keys(*pattern, {"String", "Regex"});
  if (const auto regex = pattern->string("Regex")) {
    if (*regex != " {2,}" && *regex != "\\s+") {
      pattern->fail("Regex", "is " + models::in_quotes(*regex) + ", expected ' {2,}' or '\\s+'");
    }
    kind_ = *regex == " {2,}" ? Kind::spaces : Kind::white_space;
    passes_cuts_ = has_no_letters(content_);
    return;
  }
  pattern_ = needed_string(*pattern, "String");
  if (pattern_.empty()) pattern->fail("String", "is empty");
  if (pattern_.size() > kLongestToken) pattern->fail("String", "is too long");
  passes_cuts_ = has_no_letters(pattern_) && has_no_letters(content_);
}

Replacement::Match Replacement::find(std::string_view text, std::size_t at) const {
  constexpr std::size_t kNowhere = std::string_view::npos;
  switch (kind_) {
    case Kind::text: {
      const std::size_t found = text.find(pattern_, at);
      return {found, found == kNowhere ? kNowhere : found + pattern_.size()};
    }
    case Kind::spaces: {
      const std::size_t found = text.find("  ", at);
      return {found, found == kNowhere ? kNowhere : std::min(text.find_first_not_of(' ', found), text.size())};
    }
    default:
      break;
  }
  for (std::size_t begin = at; begin < text.size();) {
    std::size_t end = begin;
    if (!is_white_space(next_code_point(text, end))) {
      begin = end;
      continue;
    }
    for (std::size_t behind = end; behind < text.size() && is_white_space(next_code_point(text, behind));) end = behind;
    return {begin, end};
  }
  return {kNowhere, kNowhere};
}

void Replacement::apply(std::string& text, Spare& spare, bool& whole_front) const {
  Match match = find(text, 0);
  if (match.begin == std::string_view::npos) return;
  if (match.begin == 0 && content_.empty()) whole_front = false;
  std::string& out = spare.text;
  out.clear();
  std::size_t at = 0;
  for (; match.begin != std::string_view::npos; match = find(text, match.end)) {
    // What stays as it is, such as a single space among those that become one, is copied with what is around it.
    if (std::string_view(text).substr(match.begin, match.end - match.begin) == content_) continue;
    out.append(text, at, match.begin - at).append(content_);
    at = match.end;
  }
  if (at == 0) return;
  out.append(text, at);
  text.swap(out);
}

}  // namespace headlight::text
