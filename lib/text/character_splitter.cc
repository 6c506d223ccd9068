#include "text/character_splitter.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "text/cut.h"

namespace headlight::text {
namespace {

enum class Kind : std::uint8_t { other, isolated, removed };

// What goes for one rule is gone for all.
Kind kind_of(const std::vector<CharacterRule>& rules, char32_t character) {
  Kind kind = Kind::other;
  for (const CharacterRule& rule : rules) {
    if (kind == Kind::removed || !rule.matches(character)) continue;
    kind = rule.behavior == Behavior::removed ? Kind::removed : Kind::isolated;
  }
  return kind;
}

AtCut pass_cuts(std::string_view) { return AtCut::passes; }

}  // namespace

AtCut at_white_space(std::string_view space) { return space == kMetaspace ? AtCut::passes : AtCut::splits; }

std::optional<CharacterRule> read_character_rule(const JsonValue& part) {
  const std::string type = type_of(part);
  if (type == "Digits") {
    expect_keys(part, {"individual_digits"});
    const bool alone = needed_boolean(part, "individual_digits");
    return CharacterRule{&is_number, alone ? Behavior::isolated : Behavior::contiguous, &pass_cuts};
  }
  if (type == "Punctuation") {
    expect_keys(part, {"behavior"});
    const Behavior behavior = part.contains("behavior") ? read_behavior(part, "behavior") : Behavior::isolated;
    return CharacterRule{&is_punctuation, behavior, &pass_cuts};
  }
  if (type != "WhitespaceSplit") return std::nullopt;
  expect_keys(part, {});
  return CharacterRule{[](char32_t character) { return is_white_space(character); }, Behavior::removed,
                       &at_white_space};
}

CharacterSplitter::CharacterSplitter(std::vector<CharacterRule> rules, TableLimit& limit)
    : rules_(std::move(rules)),
      kinds_([of = rules_](char32_t character) { return static_cast<std::uint8_t>(kind_of(of, character)); }, limit) {}

AtCut CharacterSplitter::at_cut(std::string_view space) const {
  for (const CharacterRule& rule : rules_) {
    if (const AtCut found = rule.cuts(space); found != AtCut::passes) return found;
  }
  return AtCut::passes;
}

void CharacterSplitter::split(std::string_view piece, bool first, Scratch&, PieceSink& out) const {
  const auto kind = [this](char32_t character) { return static_cast<Kind>(kinds_(character)); };
  if (!rules_[0].is_plain()) {
    return split_characters(piece, first, rules_[0].behavior, out,
                            [&](char32_t character) { return kind(character) != Kind::other; });
  }
  std::size_t given = 0;
  const auto give = [&](std::size_t end) {
    if (end > given) out.take(piece.substr(given, end - given), first && given == 0);
    given = end;
  };
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t begin = at;
    const Kind found = kind(next_code_point(piece, at));
    if (found == Kind::other) continue;
    give(begin);
    if (found == Kind::removed) given = at;
    give(at);
  }
  give(piece.size());
}

}  // namespace headlight::text
