// Characters and UTF-8 beside utf8proc.
#include "text/characters.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <string>

#include "support/random.h"
#include "text/utf8.h"

namespace headlight::text::characters_test {

constexpr char32_t kEnd = 0x110000;

TEST(Characters, WhiteSpaceIsThatOfUnicode) {
  for (char32_t character = 0; character < kEnd; ++character) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(character));
    const bool separates =
        category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
    const bool controls = (character >= '\t' && character <= '\r') || character == 0x85;
    ASSERT_EQ(is_white_space(character), separates || controls) << static_cast<std::uint32_t>(character);
  }
}

TEST(Characters, ATableSaysWhatItsFunctionSays) {
  const auto is_odd = [](char32_t character) -> std::uint8_t { return character % 3 == 0 ? 2 : 0; };
  TableLimit none;
  const CharacterTable table(is_odd, none);
  for (const char32_t character : {U'\0', U'a', U'\uFFFF', U'\U00010000', U'\U0010FFFF'}) {
    EXPECT_EQ(table(character), is_odd(character));
  }
}

void expect_same(std::string_view text) {
  utf8proc_int32_t expected = 0;
  const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                     static_cast<utf8proc_ssize_t>(text.size()), &expected);
  const CodePoint found = code_point_at(text, 0);
  ASSERT_EQ(found.size, size > 0 ? static_cast<std::size_t>(size) : 0u) << text;
  ASSERT_EQ(found.value, size > 0 ? static_cast<char32_t>(expected) : char32_t{0xFFFD}) << text;
}

TEST(Utf8, CodePointsAreThoseOfUtf8proc) {
  for (char32_t character = 0; character < kEnd; ++character) {
    if (character >= 0xD800 && character < 0xE000) continue;
    std::string text;
    append_utf8(text, character);
    expect_same(text);
    expect_same(text + "a");
    text.pop_back();
    if (!text.empty()) expect_same(text);
    if (HasFatalFailure()) return;
  }
  test::Random random(5);
  for (int n = 0; n < 200'000; ++n) {
    std::string text(static_cast<std::size_t>(random.integer(1, 5)), '\0');
    for (char& byte : text)
      byte = static_cast<char>(random.integer(0, 3) == 0 ? random.integer(0, 255) : random.integer(0x80, 0xF5));
    expect_same(text);
    if (HasFatalFailure()) return;
  }
}

}  // namespace headlight::text::characters_test
