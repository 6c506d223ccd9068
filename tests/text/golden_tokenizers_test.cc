// Tokenizers of every kind beside those of Hugging Face, whose ids and texts tests/golden/text_tokenizers.py wrote.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "support/golden.h"

namespace headlight::text::golden_tokenizers_test {

using Json = nlohmann::json;

std::string folder() {
  const char* const other = std::getenv("HEADLIGHT_TOKENIZER_CASES");
  return other != nullptr ? other : test::golden_path("tokenizers");
}

// [text, pair or null, ids, decoded, decoded without special tokens], of which the last two may be missing.
void check(const Tokenizer& tokenizer, const Json& one) {
  const auto text = one[0].get<std::string>();
  const auto ids = one[2].get<std::vector<std::int64_t>>();
  const auto found = one[1].is_null() ? tokenizer.encode(text) : tokenizer.encode_pair(text, one[1].get<std::string>());
  ASSERT_EQ(found, ids) << one[0] << one[1];
  if (one.size() > 3) {
    ASSERT_EQ(tokenizer.decode(ids), one[3].get<std::string>()) << one;
  }
  if (one.size() > 4) {
    ASSERT_EQ(tokenizer.decode(ids, SpecialTokens::without), one[4].get<std::string>()) << one;
  }
}

TEST(GoldenTokenizers, GiveTheIdsAndTextsOfThePublishedLibrary) {
  int tokenizers = 0, cases = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder())) {
    SCOPED_TRACE(file.path());
    std::ifstream stream(file.path());
    std::optional<Tokenizer> tokenizer;
    for (std::string line; std::getline(stream, line);) {
      const Json one = Json::parse(line);
      if (one.is_object()) {
        tokenizer = Tokenizer::parse(one["tokenizer"].dump());
        ++tokenizers;
        continue;
      }
      ASSERT_TRUE(tokenizer);
      check(*tokenizer, one);
      if (HasFatalFailure()) return;
      ++cases;
    }
  }
  EXPECT_GE(cases, 10);
  if (std::getenv("HEADLIGHT_TOKENIZER_CASES") == nullptr) {
    EXPECT_GE(tokenizers, 40);
  }
}

}  // namespace headlight::text::golden_tokenizers_test
