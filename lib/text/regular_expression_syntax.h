// The syntax of regular expressions in tokenizer.json, which is that of Oniguruma, as far as published files use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/character_classes.h"

namespace headlight::text {

struct Expression {
  enum class Kind : std::uint8_t {
    set,       // one character of `set`
    ahead,     // nothing, before a character of `set`, or if `at_end` before the end
    sequence,  // its parts one after another
    choice,    // the first of its parts with which the whole matches
    repeat,    // its part so many times
  };
  enum class Greed : std::uint8_t { most, least, possessive };
  static constexpr std::size_t kUnbounded = SIZE_MAX;

  Kind kind = Kind::sequence;
  std::size_t set = 0;  // the number of a set
  bool at_end = false;
  std::size_t fewest = 1, most = 1;
  Greed greed = Greed::most;
  std::vector<Expression> parts;
};

struct ParsedExpression {
  Expression expression;
  std::vector<CharacterSet> sets;
};

// Reads
//   characters: a, ., [a-z\s], [^a[bc]], \d \s \w \D \S \W, \p{L}, \p{Lu}, \P{L}, \p{^L}, \n \r \t \f \v, \x41,
//   \x{4E00},
//               \u4E00, \ before a mark
//   | ( ) (?: ) (?i: ) with letters of ASCII, * + ? {n} {n,} {,m} {n,m}, *? +? ??, ?+ *+ ++ of single characters
//   (?= ) and (?! ) with a single character, $ (before a line end or the end), \z (the end).
// Throws std::invalid_argument, "has '\b' at byte 3, which is not supported", for everything else.
[[nodiscard]] ParsedExpression parse_expression(std::string_view pattern);

}  // namespace headlight::text
