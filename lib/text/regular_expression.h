// The regular expressions of tokenizer.json, as automata: a text is matched a character at a time, without going back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/character_classes.h"
#include "text/parts.h"
#include "text/regular_expression_syntax.h"
#include "text/table_limit.h"

namespace headlight::text {

// The matches are those of a backtracking search, of which an automaton finds the same: a state is the list of places
// in the expression at which the search may be, the preferred ones first, and what is less preferred than a match is
// left out (Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009). What stands ahead is one character
// at most, and is asked for when that character is read.
class RegularExpression {
 public:
  // Throws std::invalid_argument, saying what the pattern has or is, for a pattern that parse_expression() does not
  // read, that matches an empty text or repeats what may be empty, or whose automaton has more than kMostTransitions
  // transitions. Asks the limit for kMostBytes.
  RegularExpression(std::string_view pattern, TableLimit& limit);

  struct Match {
    std::size_t begin, end;
  };
  // Of what is read of a text: so many bytes for each that it has.
  class Budget {
   public:
    explicit Budget(std::string_view text) noexcept
        : text_bytes_(text.size()), left_(kMostReads * text_bytes_ + kSlack) {}
    // Throws std::invalid_argument when there is not so much left.
    void take(std::size_t bytes) {
      if (bytes > left_) refuse();
      left_ -= bytes;
    }

   private:
    static constexpr std::size_t kMostReads = 32, kSlack = 4096;
    [[noreturn]] void refuse() const;

    std::size_t text_bytes_, left_;
  };
  // The first match in text[from, …): both text.size() where there is none. Throws std::invalid_argument when the
  // matches of the text take more than its budget, as those of a*b may in a text of a.
  [[nodiscard]] Match find(std::string_view text, std::size_t from, Budget& budget) const;

  // Whether a match ends at each cut (text/cut.h), whose space stayed a space.
  [[nodiscard]] bool ends_at_cuts() const noexcept;
  // Whether no match has letters.
  [[nodiscard]] bool has_no_letters() const noexcept;

 private:
  static constexpr std::size_t kMostTransitions = std::size_t{1} << 13;
  static constexpr std::size_t kMostBytes = 2 * kMostTransitions + CharacterClasses::kMostBytes;
  static constexpr std::size_t kMatches = 0x8000, kStates = 0x7FFF;

  explicit RegularExpression(const ParsedExpression& parsed);
  static ParsedExpression parse_within(std::string_view pattern, TableLimit& limit);

  // A state is where its transitions begin.
  [[nodiscard]] std::size_t start() const noexcept { return width_; }
  [[nodiscard]] std::size_t end_class() const noexcept { return width_ - 1; }
  [[nodiscard]] std::size_t next(std::size_t state, std::size_t character_class) const noexcept {
    return transitions_[state + character_class];
  }

  CharacterClasses classes_;
  std::size_t width_;  // one more than there are classes: the last is the end of the text
  // For each state and class: the next state, 0 where nothing more can match, and kMatches where a match ends before
  // the character.
  std::vector<std::uint16_t> transitions_;
};

// That of a `Regex` of a file; refuses others by its key.
[[nodiscard]] RegularExpression read_expression(const JsonValue& pattern, std::string_view regex, TableLimit& limit);

}  // namespace headlight::text
