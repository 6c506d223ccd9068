#include "text/regular_expression_syntax.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "headlight/models/errors.h"

namespace headlight::text {
namespace {

constexpr std::size_t kMostRepeats = 256;
constexpr int kDeepest = 32;
constexpr std::size_t kLongest = 4096;

// As utf8proc numbers them.
constexpr std::string_view kCategoryNames[kGeneralCategories] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_letter(char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); }

CharacterSet one_character(char32_t character) {
  CharacterSet set;
  set.ranges.push_back({character, character});
  return set;
}

CharacterSet all_but(CharacterSet set) {
  set.negated = !set.negated;
  return set;
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  ParsedExpression parse() {
    if (pattern_.size() > kLongest) throw std::invalid_argument("is longer than 4096 bytes");
    Expression whole = choice();
    if (at_ < pattern_.size()) fail(at_);
    return {std::move(whole), std::move(sets_)};
  }

 private:
  using Kind = Expression::Kind;

  [[noreturn]] void fail(std::size_t from) const {
    std::size_t end = std::max(at_, from);
    if (end < pattern_.size() && end == from) end += size_of_code_point(pattern_[end]);
    throw std::invalid_argument("has " + models::in_quotes(pattern_.substr(from, end - from)) + " at byte " +
                                std::to_string(from) + ", which is not supported");
  }
  [[nodiscard]] bool is_next(std::string_view token) const { return pattern_.substr(at_).starts_with(token); }
  bool take(std::string_view token) {
    if (!is_next(token)) return false;
    at_ += token.size();
    return true;
  }

  Expression of_set(CharacterSet set, Kind kind = Kind::set) {
    Expression expression;
    expression.kind = kind;
    const auto found = std::find(sets_.begin(), sets_.end(), set);
    expression.set = static_cast<std::size_t>(found - sets_.begin());
    if (found == sets_.end()) sets_.push_back(std::move(set));
    return expression;
  }

  Expression choice() {
    if (++depth_ > kDeepest) throw std::invalid_argument("is nested more than 32 deep");
    Expression expression;
    expression.kind = Kind::choice;
    do {
      expression.parts.push_back(sequence());
    } while (take("|"));
    --depth_;
    return expression.parts.size() > 1 ? expression : std::move(expression.parts[0]);
  }

  Expression sequence() {
    Expression expression;
    char before = '\0';
    while (at_ < pattern_.size() && pattern_[at_] != '|' && pattern_[at_] != ')') {
      const std::size_t from = at_;
      Expression one = atom();
      // Without case, "ss" is "ß" as well.
      const char letter = any_case_ && at_ == from + 1 ? pattern_[from] : '\0';
      if (folds_together(before, letter)) fail(from - 1);
      expression.parts.push_back(repeated(std::move(one)));
      before = letter;
    }
    return expression;
  }

  static bool folds_together(char first, char second) {
    const auto lower = [](char c) { return static_cast<char>(c | 0x20); };
    for (const std::string_view pair : {"ss", "st", "ff", "fi", "fl"}) {
      if (is_letter(first) && lower(first) == pair[0] && is_letter(second) && lower(second) == pair[1]) return true;
    }
    return false;
  }

  Expression repeated(Expression child) {
    bool counted = false;
    for (bool first = true; at_ < pattern_.size(); first = false) {
      const std::size_t from = at_;
      Expression expression;
      expression.kind = Kind::repeat;
      if (take("*")) {
        expression.fewest = 0, expression.most = Expression::kUnbounded;
      } else if (take("+")) {
        expression.most = Expression::kUnbounded;
      } else if (take("?")) {
        expression.fewest = 0;
      } else if (is_next("{")) {
        bounds(expression);
      } else {
        break;
      }
      // Oniguruma reads {2}+ as the repetition of a repetition, and few would say what {2}? is.
      if (!first && !(counted && pattern_.substr(from, at_ - from) == "+")) fail(from);
      counted = pattern_[from] == '{';
      if (!counted && take("?")) expression.greed = Expression::Greed::least;
      if (!counted && expression.greed == Expression::Greed::most && take("+")) {
        expression.greed = Expression::Greed::possessive;
        if (child.kind != Kind::set) fail(from);
      }
      expression.parts.push_back(std::move(child));
      child = std::move(expression);
    }
    return child;
  }

  void bounds(Expression& expression) {
    const std::size_t from = at_++;
    const auto number = [this]() -> std::optional<std::size_t> {
      std::optional<std::size_t> value;
      while (at_ < pattern_.size() && is_digit(pattern_[at_]) && value.value_or(0) <= kMostRepeats) {
        value = value.value_or(0) * 10 + static_cast<std::size_t>(pattern_[at_++] - '0');
      }
      return value;
    };
    const std::optional<std::size_t> fewest = number();
    const bool comma = take(",");
    const std::optional<std::size_t> most = comma ? number() : fewest;
    if (!take("}") || (!fewest && !most)) fail(from);
    expression.fewest = fewest.value_or(0);
    expression.most = most.value_or(Expression::kUnbounded);
    if (most.value_or(0) > kMostRepeats || expression.fewest > kMostRepeats || expression.most < expression.fewest) {
      fail(from);
    }
  }

  Expression atom() {
    const std::size_t from = at_;
    if (is_next("(")) return group();
    if (take(".")) return of_set(all_but(one_character('\n')));
    if (take("$")) {
      Expression end = of_set(one_character('\n'), Kind::ahead);
      end.at_end = true;
      return end;
    }
    if (take("\\z")) {
      Expression end = of_set({}, Kind::ahead);
      end.at_end = true;
      return end;
    }
    if (std::string_view("*+?{}^").find(pattern_[at_]) != std::string_view::npos) fail(from);
    return of_set(set_at());
  }

  Expression group() {
    const std::size_t from = at_++;
    if (is_next("?=") || is_next("?!")) {
      const bool negated = pattern_[at_ + 1] == '!';
      at_ += 2;
      if (at_ == pattern_.size() || pattern_[at_] == '(' || pattern_[at_] == ')') fail(from);
      CharacterSet set = set_at();
      if (!take(")")) fail(from);
      Expression ahead = of_set(negated ? all_but(std::move(set)) : std::move(set), Kind::ahead);
      ahead.at_end = negated;
      return ahead;
    }
    // Oniguruma folds letters together across groups.
    if (any_case_) fail(from);
    if (take("?i:")) {
      any_case_ = true;
    } else if (!take("?:") && is_next("?")) {
      at_ = std::min(at_ + 2, pattern_.size());
      fail(from);
    }
    Expression inside = choice();
    if (!take(")")) fail(from);
    any_case_ = false;
    return inside;
  }

  // One character, or a set of them.
  CharacterSet set_at() {
    const std::size_t from = at_;
    if (take("[")) return bracket(from);
    if (std::optional<CharacterSet> set = named_set(false)) return *set;
    return folded(one_character(character()), from);
  }

  // What stands behind "[".
  CharacterSet bracket(std::size_t from) {
    if (++depth_ > kDeepest) throw std::invalid_argument("is nested more than 32 deep");
    CharacterSet set;
    set.negated = take("^");
    for (bool first = true; first || !take("]"); first = false) {
      if (at_ >= pattern_.size() || is_next("[:") || is_next("&&") || (first && is_next("]"))) fail(from);
      const std::size_t item = at_;
      if (take("[")) {
        set.sets.push_back(bracket(item));
      } else if (std::optional<CharacterSet> named = named_set(true)) {
        set.sets.push_back(*named);
        if (is_next("-") && !is_next("-]")) fail(item);
      } else {
        CharacterRange range{};
        range.first = range.last = character();
        if (is_next("-") && !is_next("-]")) {
          ++at_;
          if (is_next("[") || named_set(true)) fail(item);
          range.last = character();
          if (range.last < range.first) fail(item);
        }
        set.ranges.push_back(range);
      }
    }
    --depth_;
    return folded(std::move(set), from);
  }

  // In ascending order, none of them touching another.
  static void merge(std::vector<CharacterRange>& ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const CharacterRange& a, const CharacterRange& b) { return a.first < b.first; });
    std::vector<CharacterRange> merged;
    for (const CharacterRange& range : ranges) {
      if (!merged.empty() && range.first <= merged.back().last + 1) {
        merged.back().last = std::max(merged.back().last, range.last);
      } else {
        merged.push_back(range);
      }
    }
    ranges = std::move(merged);
  }

  // \d, \p{L} and their like.
  std::optional<CharacterSet> named_set(bool in_brackets) {
    const std::size_t from = at_;
    if (pattern_.size() - at_ < 2 || pattern_[at_] != '\\') return std::nullopt;
    const char name = pattern_[at_ + 1];
    CharacterSet set;
    switch (name) {
      case 'd':
      case 'D':
        set.categories = std::uint32_t{1} << UTF8PROC_CATEGORY_ND;
        break;
      case 's':
      case 'S':
        set = white_space();
        break;
      case 'w':
      case 'W':
        set = word_characters();
        // Oniguruma's outside of brackets; in them it is as Unicode has it.
        if (!in_brackets) set.ranges.insert(set.ranges.begin(), {{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}});
        break;
      case 'p':
      case 'P': {
        at_ += 2;
        if (!take("{")) fail(from);
        set.negated = take("^");
        set.categories = categories_named(from);
        break;
      }
      default:
        return std::nullopt;
    }
    if (name != 'p' && name != 'P') at_ += 2;
    // With another case, they would be other sets.
    if (any_case_ && name != 's' && name != 'S' && name != 'd' && name != 'D') fail(from);
    return name >= 'A' && name <= 'Z' ? all_but(std::move(set)) : set;
  }

  std::uint32_t categories_named(std::size_t from) {
    const std::size_t end = pattern_.find('}', at_);
    const std::string_view name = end < pattern_.size() ? pattern_.substr(at_, end - at_) : std::string_view();
    std::uint32_t categories = 0;
    for (std::size_t c = 0; c < std::size(kCategoryNames); ++c) {
      if (!name.empty() && name.size() <= 2 && kCategoryNames[c].starts_with(name)) categories |= std::uint32_t{1} << c;
    }
    at_ = end < pattern_.size() ? end + 1 : pattern_.size();
    if (categories == 0) fail(from);
    return categories;
  }

  char32_t character() {
    const std::size_t from = at_;
    if (at_ >= pattern_.size()) fail(from);
    if (!take("\\")) return next_code_point(pattern_, at_);
    if (at_ >= pattern_.size()) fail(from);
    const char name = pattern_[at_++];
    switch (name) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'x':
        return take("{") ? hexadecimal(from, 1, 6, "}") : hexadecimal(from, 2, 2, "");
      case 'u':
        return hexadecimal(from, 4, 4, "");
      default:
        if (is_letter(name) || is_digit(name) || static_cast<unsigned char>(name) >= 0x80) fail(from);
        return static_cast<char32_t>(name);
    }
  }

  char32_t hexadecimal(std::size_t from, std::size_t fewest, std::size_t most, std::string_view end) {
    const auto digit = [](char byte) {
      return is_digit(byte) ? byte - '0' : (byte | 0x20) >= 'a' && (byte | 0x20) <= 'f' ? (byte | 0x20) - 'a' + 10 : -1;
    };
    char32_t value = 0;
    std::size_t digits = 0;
    for (; digits < most && at_ < pattern_.size() && digit(pattern_[at_]) >= 0; ++digits, ++at_) {
      value = value * 16 + static_cast<char32_t>(digit(pattern_[at_]));
    }
    // \x80 to \xFF are bytes, and not characters.
    const bool is_byte = most == 2 && value >= 0x80;
    if (digits < fewest || !take(end) || value > 0x10FFFF || is_byte) fail(from);
    return value;
  }

  // With the other case of each letter, if case is of no account. Of letters of ASCII, ſ and the sign K of Kelvin are
  // the only other ones beyond it.
  [[nodiscard]] CharacterSet folded(CharacterSet set, std::size_t from) const {
    const std::vector<CharacterRange> letters = any_case_ ? set.ranges : std::vector<CharacterRange>();
    for (const CharacterRange& range : letters) {
      if (range.last >= 0x80) fail(from);
      for (char32_t c = range.first; c <= range.last; ++c) {
        if (!is_letter(static_cast<char>(c))) continue;
        const char32_t lower = c | 0x20;
        set.ranges.push_back({c ^ 0x20, c ^ 0x20});
        if (lower == 's') set.ranges.push_back({0x17F, 0x17F});
        if (lower == 'k') set.ranges.push_back({0x212A, 0x212A});
      }
    }
    merge(set.ranges);
    return set;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool any_case_ = false;
  std::vector<CharacterSet> sets_;
};

}  // namespace

ParsedExpression parse_expression(std::string_view pattern) { return Parser(pattern).parse(); }

}  // namespace headlight::text
