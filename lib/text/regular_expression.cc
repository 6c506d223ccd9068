#include "text/regular_expression.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "headlight/models/errors.h"

namespace headlight::text {
namespace {

// The places of an expression at which a search may be.
class Program {
 public:
  enum class Kind : std::uint8_t { character, ahead, either, match };
  struct Place {
    Kind kind = Kind::match;
    std::uint64_t classes = 0;  // of the character that is read, or that stands ahead; bit `end` for the end
    std::size_t next = 0;
    std::size_t other = 0;  // of `either`: less preferred than next
  };

  Program(const ParsedExpression& parsed, const CharacterClasses& classes) : classes_(classes) {
    if (may_be_empty(parsed.expression)) throw std::invalid_argument("matches an empty text, which is not supported");
    start_ = add(parsed.expression, add(Place{}));
  }

  [[nodiscard]] std::size_t start() const noexcept { return start_; }
  [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }
  [[nodiscard]] const Place& operator[](std::size_t place) const noexcept { return places_[place]; }

 private:
  static constexpr std::size_t kMostPlaces = 1024;
  using Expression = text::Expression;

  static bool may_be_empty(const Expression& expression) {
    switch (expression.kind) {
      case Expression::Kind::set:
        return false;
      case Expression::Kind::ahead:
        return true;
      case Expression::Kind::sequence:
        return std::all_of(expression.parts.begin(), expression.parts.end(), may_be_empty);
      case Expression::Kind::choice:
        return std::any_of(expression.parts.begin(), expression.parts.end(), may_be_empty);
      default:
        return expression.fewest == 0 || may_be_empty(expression.parts[0]);
    }
  }

  std::size_t add(const Place& place) {
    if (places_.size() == kMostPlaces) throw std::invalid_argument("has more than 1024 places, which is not supported");
    places_.push_back(place);
    return places_.size() - 1;
  }

  // The place at which `expression` begins, behind which comes `next`.
  std::size_t add(const Expression& expression, std::size_t next) {
    switch (expression.kind) {
      case Expression::Kind::set:
        return add({Kind::character, classes_.of_set(expression.set), next});
      case Expression::Kind::ahead: {
        const std::uint64_t end = expression.at_end ? std::uint64_t{1} << classes_.size() : 0;
        return add({Kind::ahead, classes_.of_set(expression.set) | end, next});
      }
      case Expression::Kind::sequence:
        for (auto part = expression.parts.rbegin(); part != expression.parts.rend(); ++part) next = add(*part, next);
        return next;
      case Expression::Kind::choice: {
        std::size_t begin = add(expression.parts.back(), next);
        for (std::size_t i = expression.parts.size() - 1; i-- > 0;)
          begin = either(add(expression.parts[i], next), begin);
        return begin;
      }
      default:
        return add_repeat(expression, next);
    }
  }

  std::size_t either(std::size_t preferred, std::size_t other) { return add({Kind::either, 0, preferred, other}); }

  std::size_t add_repeat(const Expression& expression, std::size_t next) {
    const Expression& part = expression.parts[0];
    // Nor would it add a place, and so come to an end, however often it is repeated.
    if (may_be_empty(part)) throw std::invalid_argument("repeats what may be empty, which is not supported");
    // What is possessive takes all it can: it ends only before what is none of it.
    std::size_t stop = next;
    if (expression.greed == Expression::Greed::possessive) {
      const std::uint64_t all = ~std::uint64_t{0} >> (63 - classes_.size());
      stop = add({Kind::ahead, all & ~classes_.of_set(part.set), next});
    }
    const auto again = [&](std::size_t more, std::size_t enough) {
      return expression.greed == Expression::Greed::least ? either(enough, more) : either(more, enough);
    };
    std::size_t begin = stop;
    if (expression.most == Expression::kUnbounded) {
      const std::size_t loop = add(Place{});  // known before what it leads back to
      const std::size_t more = add(part, loop);
      const std::size_t chosen = again(more, stop);
      places_[loop] = places_[chosen];
      begin = loop;
    } else {
      // Behind the last one that may be, nothing stands ahead.
      std::size_t behind = next;
      for (std::size_t n = expression.most; n > expression.fewest; --n) behind = again(add(part, behind), stop);
      begin = behind;
    }
    for (std::size_t n = 0; n < expression.fewest; ++n) begin = add(part, begin);
    return begin;
  }

  const CharacterClasses& classes_;
  std::vector<Place> places_;
  std::size_t start_ = 0;
};

// What may stand before a cut: letters, and what normalizers make of them.
bool is_of_words(char32_t character, int category) {
  if (character < 0x80) return (character | 0x20) >= 'a' && (character | 0x20) <= 'z';
  constexpr std::uint32_t kSpaces =
      1U << UTF8PROC_CATEGORY_ZS | 1U << UTF8PROC_CATEGORY_ZL | 1U << UTF8PROC_CATEGORY_ZP | 1U << UTF8PROC_CATEGORY_CC;
  return (kSpaces >> category & 1) == 0;
}

constexpr std::size_t kMostHeld = std::size_t{1} << 16;

// What the search does with the next character.
class Search {
 public:
  explicit Search(const Program& program) : program_(program), seen_(program.size()), kept_(program.size()) {}

  // From the places of a state, before a character of a class: where it goes on behind it, and whether a match ends
  // before it.
  bool take(const std::vector<std::uint16_t>& state, std::size_t character_class, std::vector<std::uint16_t>& behind) {
    std::fill(seen_.begin(), seen_.end(), false);
    std::fill(kept_.begin(), kept_.end(), false);
    behind.clear();
    const std::uint64_t bit = std::uint64_t{1} << character_class;
    for (const std::uint16_t begin : state) {
      stack_.assign(1, begin);
      while (!stack_.empty()) {
        const std::size_t at = stack_.back();
        stack_.pop_back();
        if (seen_[at]) continue;
        seen_[at] = true;
        const Program::Place& place = program_[at];
        switch (place.kind) {
          case Program::Kind::match:
            return true;
          case Program::Kind::either:
            stack_.push_back(place.other);
            stack_.push_back(place.next);
            break;
          case Program::Kind::ahead:
            if ((place.classes & bit) != 0) stack_.push_back(place.next);
            break;
          case Program::Kind::character:
            if ((place.classes & bit) != 0 && !kept_[place.next]) {
              kept_[place.next] = true;
              behind.push_back(static_cast<std::uint16_t>(place.next));
            }
            break;
        }
      }
    }
    return false;
  }

 private:
  const Program& program_;
  std::vector<bool> seen_, kept_;
  std::vector<std::size_t> stack_;
};

}  // namespace

// Asks before anything is made.
ParsedExpression RegularExpression::parse_within(std::string_view pattern, TableLimit& limit) {
  limit.take(kMostBytes);
  return parse_expression(pattern);
}

RegularExpression::RegularExpression(std::string_view pattern, TableLimit& limit)
    : RegularExpression(parse_within(pattern, limit)) {}

RegularExpression::RegularExpression(const ParsedExpression& parsed)
    : classes_(parsed.sets), width_(classes_.size() + 1) {
  const Program program(parsed, classes_);
  Search search(program);
  // State 0 is where nothing can match, 1 the beginning.
  std::vector<std::vector<std::uint16_t>> states = {{}, {static_cast<std::uint16_t>(program.start())}};
  std::map<std::vector<std::uint16_t>, std::uint16_t> known = {{states[0], 0}, {states[1], 1}};
  std::vector<std::uint16_t> behind;
  std::size_t held = 0;  // by states, in places
  for (std::size_t state = 0; state < states.size(); ++state) {
    if ((state + 1) * width_ > kMostTransitions || held > kMostHeld) {
      throw std::invalid_argument("needs an automaton that is too large");
    }
    for (std::size_t c = 0; c < width_; ++c) {
      const bool matches = search.take(states[state], c, behind);
      const auto [found, is_new] = known.try_emplace(behind, static_cast<std::uint16_t>(states.size()));
      if (is_new) states.push_back(behind), held += behind.size();
      transitions_.push_back(static_cast<std::uint16_t>(found->second * width_ | (matches ? kMatches : 0)));
    }
  }
  transitions_.shrink_to_fit();
}

void RegularExpression::Budget::refuse() const {
  throw std::invalid_argument("the text has " + std::to_string(text_bytes_) +
                              " bytes, of which a regular expression would read more than " +
                              std::to_string(kMostReads) + " times as many and " + std::to_string(kSlack));
}

RegularExpression::Match RegularExpression::find(std::string_view text, std::size_t from, Budget& budget) const {
  constexpr std::size_t kNowhere = std::string_view::npos;
  for (std::size_t begin = from, second = from; begin < text.size(); begin = second) {
    std::size_t state = next(start(), classes_(text, second));
    if (state == 0) continue;
    std::size_t end = kNowhere;
    for (std::size_t at = second; state != 0;) {
      const std::size_t before = at;
      const std::size_t found = next(state, at < text.size() ? classes_(text, at) : end_class());
      end = (found & kMatches) != 0 ? before : end;
      state = found & kStates;
      if (state == 0) budget.take(at - begin);
    }
    if (end != kNowhere) return {begin, end};
  }
  return {text.size(), text.size()};
}

bool RegularExpression::ends_at_cuts() const noexcept {
  std::size_t at = 0;
  const std::size_t space = classes_(" ", at);
  const std::uint64_t letters = classes_.where(is_of_words);
  for (std::size_t c = 0; c < end_class(); ++c) {
    if ((letters >> c & 1) == 0) continue;
    if (next(start(), c) == 0) return false;
    for (std::size_t state = start(); state < transitions_.size(); state += width_) {
      const std::size_t behind = next(state, c) & kStates;
      const std::size_t found = next(behind, space);
      // What matched less before the letter goes on from there, at last from the letter itself.
      if (behind != 0 && found != kMatches && (found != 0 || state == start())) return false;
    }
  }
  return true;
}

bool RegularExpression::has_no_letters() const noexcept {
  const std::uint64_t letters = classes_.where(is_of_words);
  for (std::size_t state = start(); state < transitions_.size(); state += width_) {
    for (std::size_t c = 0; c < end_class(); ++c) {
      if ((letters >> c & 1) != 0 && (next(state, c) & kStates) != 0) return false;
    }
  }
  return true;
}

RegularExpression read_expression(const JsonValue& pattern, std::string_view regex, TableLimit& limit) {
  try {
    return RegularExpression(regex, limit);
  } catch (const std::invalid_argument& error) {
    pattern.fail("Regex", "is " + models::in_quotes(regex) + " and " + error.what());
  }
}

}  // namespace headlight::text
