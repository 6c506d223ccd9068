// Texts and pairs that are cut, beside Hugging Face's tokenizers; see tests/golden/families.py.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "support/golden.h"
#include "text/pair_lengths.h"

namespace headlight::text::truncation_test {

using nlohmann::json;

Tokenizer read(const json& described) {
  std::ifstream stream(test::golden_path("tokenizers/" + described.at("file").get<std::string>()));
  std::string line;
  std::getline(stream, line);
  json tokenizer = json::parse(line).at("tokenizer");
  for (const auto& [key, value] : described.at("changes").items()) tokenizer[key] = value;
  return Tokenizer::parse(tokenizer.dump());
}

TEST(Truncation, IdsAndTypesAreThoseOfThePublishedLibrary) {
  std::optional<Tokenizer> tokenizer;
  int cases = 0;
  for (const std::string& line : test::golden_lines("truncations.jsonl")) {
    const json one = json::parse(line);
    if (one.is_object()) {
      tokenizer = read(one);
      continue;
    }
    const auto first = one[0].get<std::string>();
    const auto length = one[2].get<std::int64_t>();
    const auto ids = one[3].get<std::vector<std::int64_t>>(), types = one[4].get<std::vector<std::int64_t>>();
    ++cases;
    if (one[1].is_null()) {
      ASSERT_EQ(tokenizer->encode_within(first, length), ids) << line;
      continue;
    }
    const TokenPair pair = tokenizer->encode_pair_within(first, one[1].get<std::string>(), length);
    ASSERT_EQ(pair.ids, ids) << line;
    ASSERT_EQ(pair.types, types) << line;
  }
  EXPECT_GE(cases, 300);
}

TEST(Truncation, LessThanTheTokensAroundIsRefused) {
  const Tokenizer tokenizer = read({{"file", "unigram.jsonl"}, {"changes", json::object()}});
  const TokensAround around = tokenizer.tokens_around();
  EXPECT_EQ(around.text, 2);
  EXPECT_EQ(around.behind, 1);
  EXPECT_EQ(around.pair, 4);
  EXPECT_THROW(static_cast<void>(tokenizer.encode_within("a", 1)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(tokenizer.encode_pair_within("a", "a", 3)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(tokenizer.encode_within("\xFF", 9)), std::invalid_argument);
  EXPECT_EQ(tokenizer.find_token(0)->data(), tokenizer.find_token(0)->data());
  EXPECT_EQ(tokenizer.find_token(-1), std::nullopt);
}

TEST(Truncation, BothTextsShareTheRoom) {
  for (std::int64_t first = 0; first < 12; ++first) {
    for (std::int64_t second = 0; second < 12; ++second) {
      for (std::int64_t room = 0; room < 26; ++room) {
        const auto [one, two] = pair_lengths(first, second, room);
        ASSERT_LE(one, first);
        ASSERT_LE(two, second);
        ASSERT_EQ(one + two, std::min(first + second, room));
        // Whoever is cut has as many as the other, but for the odd one.
        ASSERT_TRUE(one == first || one >= two - (first <= second ? 1 : 0));
        ASSERT_TRUE(two == second || two >= one - (first <= second ? 0 : 1));
      }
    }
  }
}

}  // namespace headlight::text::truncation_test
