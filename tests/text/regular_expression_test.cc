// The regular expressions of tokenizer.json beside those of Hugging Face tokenizers, whose pieces
// tests/golden/regular_expressions.py wrote.
#include "text/regular_expression.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "support/golden.h"
#include "support/refusal.h"
#include "text/characters.h"

namespace headlight::text::regular_expression_test {

using Json = nlohmann::json;

RegularExpression expression_of(const std::string& pattern) {
  TableLimit limit;
  return RegularExpression(pattern, limit);
}

// What matches, and what lies between.
std::vector<std::string> pieces_of(const RegularExpression& expression, const std::string& text) {
  std::vector<std::string> pieces;
  RegularExpression::Budget budget(text);
  for (std::size_t at = 0; at < text.size();) {
    const RegularExpression::Match match = expression.find(text, at, budget);
    if (match.begin > at) pieces.push_back(text.substr(at, match.begin - at));
    if (match.end > match.begin) pieces.push_back(text.substr(match.begin, match.end - match.begin));
    at = match.end;
  }
  return pieces;
}

Json summary_of(const auto& is) {
  std::uint32_t count = 0, sum = 0;
  for (char32_t character = 0; character < 0x110000; ++character) {
    if ((character < 0xD800 || character > 0xDFFF) && is(character)) ++count, sum += character;
  }
  return {count, sum};
}

// HEADLIGHT_EXPRESSION_CASES names a file of other cases.
TEST(RegularExpression, SplitsAsThePublishedLibraryDoes) {
  const char* const other = std::getenv("HEADLIGHT_EXPRESSION_CASES");
  std::ifstream stream(other != nullptr ? other : test::golden_path("regular_expressions.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(stream, line);) {
    const Json one = Json::parse(line);
    if (!one.contains("pattern")) continue;
    const auto pattern = one["pattern"].get<std::string>();
    const RegularExpression expression = expression_of(pattern);
    for (const auto& pieces : one["pieces"].get<std::vector<std::vector<std::string>>>()) {
      std::string text;
      for (const std::string& piece : pieces) text += piece;
      ASSERT_EQ(pieces_of(expression, text), pieces) << pattern;
      ++cases;
    }
  }
  EXPECT_GE(cases, 500);
}

TEST(RegularExpression, KnowsTheCharactersOfUnicode16) {
  static const std::vector<std::string> kNames = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                                  "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                                  "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
  std::ifstream stream(test::golden_path("regular_expressions.jsonl"));
  int sets = 0;
  for (std::string line; std::getline(stream, line);) {
    const Json one = Json::parse(line);
    if (one.contains("categories")) {
      for (std::size_t c = 0; c < kNames.size(); ++c) {
        if (kNames[c] == "Cs") continue;  // halves of characters
        const auto is = [c](char32_t character) { return general_category(character) == static_cast<int>(c); };
        EXPECT_EQ(summary_of(is), one["categories"][kNames[c]]) << kNames[c];
        ++sets;
      }
    } else if (one.contains("words")) {
      const CharacterSet words = word_characters();
      const auto is = [&](char32_t character) { return words.contains(character, general_category(character)); };
      EXPECT_EQ(summary_of(is), one["words"]);
      ++sets;
    }
  }
  EXPECT_EQ(sets, 30);
  for (char32_t character = 0; character < 0x110000; ++character) {
    ASSERT_EQ(white_space().contains(character, general_category(character)), is_white_space(character));
  }
}

TEST(RegularExpression, SaysWhatItDoesNotRead) {
  const auto says = [](const std::string& pattern) { return test::refusal([&] { expression_of(pattern); }); };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"a\\bc", "has '\\b' at byte 1, which is not supported"},
      {"(?<=a)b", "has '(?<' at byte 0, which is not supported"},
      {"é(?!ab)c", "has '(?!a' at byte 2, which is not supported"},
      {"^a", "has '^' at byte 0, which is not supported"},
      {"(a", "has '(a' at byte 0, which is not supported"},
      {"a)", "has ')' at byte 1, which is not supported"},
      {"[a", "has '[a' at byte 0, which is not supported"},
      {"[]a]", "has '[' at byte 0, which is not supported"},
      {"[[:alpha:]]", "has '[' at byte 0, which is not supported"},
      {"[b-a]", "has 'b-a' at byte 1, which is not supported"},
      {"\\p{Han}", "has '\\p{Han}' at byte 0, which is not supported"},
      {"\\p{", "has '\\p{' at byte 0, which is not supported"},
      {"\\1", "has '\\1' at byte 0, which is not supported"},
      {"\\xE9", "has '\\xE9' at byte 0, which is not supported"},
      {"a{2,1}", "has '{2,1}' at byte 1, which is not supported"},
      {"a{1000}", "has '{1000}' at byte 1, which is not supported"},
      {"a{2}?", "has '?' at byte 4, which is not supported"},
      {"a+*", "has '*' at byte 2, which is not supported"},
      {"*a", "has '*' at byte 0, which is not supported"},
      {"(?:ab)++", "has '++' at byte 6, which is not supported"},
      {"(?i:\u00E9)", "has '\u00E9' at byte 4, which is not supported"},
      {"(?i:mass)", "has 'ss' at byte 6, which is not supported"},
      {"(?i:\\p{Lu})", "has '\\p{Lu}' at byte 4, which is not supported"},
      {"a*", "matches an empty text, which is not supported"},
      {"", "matches an empty text, which is not supported"},
      {"(?:a?)*b", "repeats what may be empty, which is not supported"},
      {"a((((){256}){256}){256}){256}", "repeats what may be empty, which is not supported"},
      {"(?i:s(?:s))", "has '(' at byte 5, which is not supported"},
      {std::string(40, '(') + "a" + std::string(40, ')'), "is nested more than 32 deep"},
      {std::string(5000, 'a'), "is longer than 4096 bytes"},
      {"(?:(?:a{256}){256}){256}", "has more than 1024 places, which is not supported"},
      {"(?:a|b)*a(?:a|b){20}", "needs an automaton that is too large"},
      // States of many places.
      {"(?:a|b)*a(?:a|b){200}", "needs an automaton that is too large"},
  };
  for (const auto& [pattern, message] : refused) EXPECT_EQ(says(pattern), message) << pattern;
}

// "\x{…}" of a character.
std::string escaped(int character) {
  std::ostringstream text;
  text << "\\x{" << std::hex << character << "}";
  return text.str();
}

TEST(RegularExpression, ManyKindsOfCharactersAreRefused) {
  const auto says = [](const std::string& pattern) { return test::refusal([&] { expression_of(pattern); }); };
  std::string ranges = "[a";
  for (int i = 0; i < 256; ++i) ranges += escaped(1000 + 2 * i);
  EXPECT_EQ(says(ranges + "]"), "");
  EXPECT_EQ(says(ranges + escaped(2000) + "]"), "has more than 256 ranges of characters");
  // Those that touch are one.
  std::string touching = "[a";
  for (int i = 0; i < 400; ++i) touching += escaped(1000 + i);
  EXPECT_EQ(says(touching + "]"), "");
  std::string characters;
  for (int c = '!'; c < '!' + 70; ++c) {
    if (c == '!' + 62) {
      EXPECT_EQ(says(characters), "");
    }
    if (c == '!' + 63) {
      EXPECT_EQ(says(characters), "tells more than 63 kinds of characters apart");
    }
    characters += escaped(c);
  }
  EXPECT_EQ(says(characters), "has more than 64 sets of characters");
}

TEST(RegularExpression, KnowsWhatEndsAtACut) {
  EXPECT_TRUE(expression_of(R"( ?\p{L}+|\s+|.)").ends_at_cuts());
  EXPECT_FALSE(expression_of(R"(\p{L}+ ?|\s+|.)").ends_at_cuts());  // takes the space
  EXPECT_FALSE(expression_of(R"([a-z]+|\s+)").ends_at_cuts());      // other letters stand with what follows
  EXPECT_FALSE(expression_of(R"(\p{L}+(?=,)|\s+|.+)").ends_at_cuts());
  EXPECT_TRUE(expression_of(R"( {2,})").has_no_letters());
  EXPECT_TRUE(expression_of(R"(\s+)").has_no_letters());
  EXPECT_FALSE(expression_of(R"( \w)").has_no_letters());
}

// Each a is tried to the end of the text.
TEST(RegularExpression, TakesNoLongTime) {
  const std::string text(1 << 20, 'a');
  const Tokenizer tokenizer = Tokenizer::parse(
      R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a*b"},"behavior":"Isolated","invert":false},"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##a":2},"unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":9}})");
  const std::vector<std::int64_t> ids = tokenizer.encode("aaa");
  EXPECT_EQ(test::refusal([&] { static_cast<void>(tokenizer.encode(text)); }),
            "the text has 1048576 bytes, of which a regular expression would read more than 32 times as many and 4096");
  EXPECT_EQ(tokenizer.encode("aaa"), ids);
}

}  // namespace headlight::text::regular_expression_test
