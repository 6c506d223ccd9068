// How a text is split at characters of some kinds.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/characters.h"
#include "text/parts.h"
#include "text/pieces.h"
#include "text/table_limit.h"

namespace headlight::text {

// At which characters, and what becomes of them.
struct CharacterRule {
  bool (*matches)(char32_t);
  Behavior behavior;
  AtCut (*cuts)(std::string_view space);

  // Whether what matches goes or stands by itself, whatever is beside it: then one walk does what several rules do one
  // after another.
  [[nodiscard]] bool is_plain() const noexcept {
    return behavior == Behavior::isolated || behavior == Behavior::removed;
  }
  bool operator==(const CharacterRule&) const = default;
};

// That of a part of the type Digits, Punctuation or WhitespaceSplit; nothing for others.
[[nodiscard]] std::optional<CharacterRule> read_character_rule(const JsonValue& part);

// Of what splits at white space; U+2581 stays where it is.
[[nodiscard]] AtCut at_white_space(std::string_view space);

// Several rules one after another, plain ones, or one rule.
class CharacterSplitter final : public PreTokenizer {
 public:
  CharacterSplitter(std::vector<CharacterRule> rules, TableLimit& limit);

  [[nodiscard]] AtCut at_cut(std::string_view space) const override;
  void split(std::string_view piece, bool first, Scratch& scratch, PieceSink& out) const override;

 private:
  std::vector<CharacterRule> rules_;
  CharacterTable kinds_;  // what becomes of each character
};

}  // namespace headlight::text
