#include <algorithm>

#include "text/cut.h"
#include "text/normalizers.h"
#include "text/regular_expression.h"

namespace headlight::text {
namespace {

constexpr std::size_t kLongestContent = 64;

}  // namespace

Replacement::Replacement(const JsonValue& part, TableLimit& limit) {
  expect_keys(part, {"pattern", "content"});
  content_ = needed_string(part, "content");
  if (content_.size() > kLongestContent) part.fail("content", "is too long");
  const auto pattern = part.object("pattern");
  if (!pattern) part.fail("pattern", "is missing, expected an object");
  expect_keys(*pattern, {"String", "Regex"});
  if (const auto regex = pattern->string("Regex")) {
    expression_ = read_expression(*pattern, *regex, limit);
    passes_cuts_ = expression_->has_no_letters() && has_no_letters(content_);
    return;
  }
  pattern_ = needed_string(*pattern, "String");
  if (pattern_.empty()) pattern->fail("String", "is empty");
  if (pattern_.size() > kLongestToken) pattern->fail("String", "is too long");
  passes_cuts_ = has_no_letters(pattern_) && has_no_letters(content_);
}

void Replacement::apply(std::string& text, Spare& spare, bool& whole_front) const {
  RegularExpression::Budget budget(text);
  const auto find = [&, in = std::string_view(text)](std::size_t at) -> RegularExpression::Match {
    if (expression_) return expression_->find(in, at, budget);
    const std::size_t begin = std::min(in.find(pattern_, at), in.size());
    return {begin, std::min(begin + pattern_.size(), in.size())};
  };
  RegularExpression::Match match = find(0);
  if (match.begin == text.size()) return;
  if (match.begin == 0 && content_.empty()) whole_front = false;
  std::string& out = spare.text;
  out.clear();
  std::size_t at = 0;
  for (; match.begin < text.size(); match = find(match.end)) {
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
