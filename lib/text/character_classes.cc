#include "text/character_classes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>

namespace headlight::text {
namespace {

void add_borders(const CharacterSet& set, std::vector<char32_t>& borders) {
  for (const CharacterRange& range : set.ranges) {
    borders.push_back(range.first);
    borders.push_back(range.last + 1);
  }
  for (const CharacterSet& part : set.sets) add_borders(part, borders);
}

}  // namespace

bool CharacterSet::contains(char32_t character, int category) const noexcept {
  const auto behind = std::upper_bound(ranges.begin(), ranges.end(), character,
                                       [](char32_t value, const CharacterRange& range) { return value < range.first; });
  const bool found =
      (categories >> category & 1) != 0 || (behind != ranges.begin() && character <= (behind - 1)->last) ||
      std::any_of(sets.begin(), sets.end(), [&](const CharacterSet& set) { return set.contains(character, category); });
  return found != negated;
}

CharacterSet white_space() {
  CharacterSet set;
  set.ranges = {{'\t', '\r'},     {' ', ' '},       {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
                {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
  return set;
}

CharacterSet word_characters() {
  CharacterSet set;
  set.categories = kWordCategories;
  set.ranges.assign(std::begin(kEnclosedLetters), std::end(kEnclosedLetters));
  return set;
}

CharacterClasses::CharacterClasses(const std::vector<CharacterSet>& sets) {
  if (sets.size() > kMostSets) throw std::invalid_argument("has more than 64 sets of characters");
  borders_.push_back(kAscii);
  for (const CharacterSet& set : sets) add_borders(set, borders_);
  std::erase_if(borders_, [](char32_t border) { return border < kAscii; });
  std::sort(borders_.begin(), borders_.end());
  borders_.erase(std::unique(borders_.begin(), borders_.end()), borders_.end());
  if (borders_.size() > kMostBorders + 1) throw std::invalid_argument("has more than 256 ranges of characters");

  std::map<std::uint64_t, std::uint8_t> known;
  const auto class_of = [&](char32_t character, int category) {
    std::uint64_t members = 0;
    for (std::size_t s = 0; s < sets.size(); ++s) {
      if (sets[s].contains(character, category)) members |= std::uint64_t{1} << s;
    }
    const auto [found, is_new] = known.try_emplace(members, static_cast<std::uint8_t>(members_.size()));
    if (is_new) {
      if (members_.size() == kMostClasses) throw std::invalid_argument("tells more than 63 kinds of characters apart");
      members_.push_back(members);
    }
    return found->second;
  };
  for (char32_t c = 0; c < kAscii; ++c) ascii_[c] = class_of(c, general_category(c));
  beyond_.resize(borders_.size());
  for (std::size_t i = 0; i < borders_.size(); ++i) {
    for (int c = 0; c < kGeneralCategories; ++c) beyond_[i][static_cast<std::size_t>(c)] = class_of(borders_[i], c);
  }
}

std::uint64_t CharacterClasses::of_set(std::size_t set) const noexcept {
  std::uint64_t classes = 0;
  for (std::size_t c = 0; c < members_.size(); ++c) classes |= (members_[c] >> set & 1) << c;
  return classes;
}

std::size_t CharacterClasses::beyond_ascii(char32_t character) const noexcept {
  const auto behind = std::upper_bound(borders_.begin(), borders_.end(), character);
  const auto interval = static_cast<std::size_t>(behind - borders_.begin()) - 1;
  return beyond_[interval][static_cast<std::size_t>(general_category(character))];
}

}  // namespace headlight::text
