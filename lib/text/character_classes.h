// Sets of characters, as regular expressions have them, and the classes of characters that some sets tell apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/characters.h"
#include "text/utf8.h"

namespace headlight::text {

// What is in any of these, or if `negated` in none of them.
struct CharacterSet {
  std::uint32_t categories = 0;        // bit c: general category c of utf8proc
  std::vector<CharacterRange> ranges;  // ascending, none of them touching another
  std::vector<CharacterSet> sets;
  bool negated = false;

  [[nodiscard]] bool contains(char32_t character, int category) const noexcept;
  bool operator==(const CharacterSet&) const = default;
};

// \s: Unicode's White_Space.
[[nodiscard]] CharacterSet white_space();
// \w in brackets: Alphabetic, marks, decimal digits, connectors.
[[nodiscard]] CharacterSet word_characters();

// Numbers each character so that those with one number are in the same ones of some sets.
class CharacterClasses {
 public:
  static constexpr std::size_t kMostSets = 64;
  static constexpr std::size_t kMostClasses = 63;
  static constexpr std::size_t kMostBorders = 512;
  static constexpr std::size_t kMostBytes = kMostBorders * (sizeof(char32_t) + kGeneralCategories) + 1024;

  // Throws std::invalid_argument when sets tell more classes apart, or have more than 256 ranges beyond ASCII.
  explicit CharacterClasses(const std::vector<CharacterSet>& sets);

  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  // Bit c: the characters of class c are in that set.
  [[nodiscard]] std::uint64_t of_set(std::size_t set) const noexcept;
  // Bit c: class c has characters for which `is`, called with a character and its category, may say true.
  // Beyond ASCII it is to depend on the category alone.
  template <class Is>
  [[nodiscard]] std::uint64_t where(const Is& is) const;

  // That of the character at `at`, which is moved behind it.
  [[nodiscard]] std::size_t operator()(std::string_view text, std::size_t& at) const noexcept {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < kAscii) {
      ++at;
      return ascii_[byte];
    }
    return beyond_ascii(next_code_point(text, at));
  }

 private:
  static constexpr char32_t kAscii = 0x80;

  [[nodiscard]] std::size_t beyond_ascii(char32_t character) const noexcept;

  std::vector<std::uint64_t> members_;  // of each class, bit s: it is in set s
  std::array<std::uint8_t, kAscii> ascii_{};
  // Beyond ASCII: between two borders a class is that of the category.
  std::vector<char32_t> borders_;
  std::vector<std::array<std::uint8_t, kGeneralCategories>> beyond_;
};

template <class Is>
std::uint64_t CharacterClasses::where(const Is& is) const {
  constexpr char32_t kShort = 256, kCodePoints = 0x110000;
  std::uint64_t classes = 0;
  for (char32_t c = 0; c < kAscii; ++c) {
    if (is(c, general_category(c))) classes |= std::uint64_t{1} << ascii_[c];
  }
  for (std::size_t i = 0; i < borders_.size(); ++i) {
    const char32_t end = i + 1 < borders_.size() ? borders_[i + 1] : kCodePoints;
    if (end - borders_[i] <= kShort) {
      for (char32_t c = borders_[i]; c < end; ++c) {
        if (is(c, general_category(c))) classes |= std::uint64_t{1} << beyond_ascii(c);
      }
      continue;
    }
    for (int category = 0; category < kGeneralCategories; ++category) {
      if (is(borders_[i], category)) classes |= std::uint64_t{1} << beyond_[i][static_cast<std::size_t>(category)];
    }
  }
  return classes;
}

}  // namespace headlight::text
