// The first tokens of long texts: those of the whole text, without going through it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/json_value.h"
#include "headlight/text/tokenizer.h"
#include "support/quick.h"
#include "support/random.h"
#include "text/cut.h"
#include "text/golden_tokenizers.h"
#include "text/pair_lengths.h"
#include "text/pipeline.h"
#include "text/utf8.h"

namespace headlight::text::first_tokens_test {

using nlohmann::json;
using test::golden_tokenizers;
using test::GoldenTokenizer;
using Ids = std::vector<std::int64_t>;

// Words of one alphabet, some with marks, capitals, apostrophes or numbers; `space` between them.
std::string words(test::Random& random, std::string_view space, std::size_t bytes) {
  static const std::vector<std::vector<std::string>> kAlphabets{
      {"a", "b", "c", "d", "e", "s", "t", "the", "X", "é", "e\u0301", "'s", "n't", "7", ".", ","},
      {"а", "б", "й", "и\u0306", "Ж", "ё", "!", "5"},
      {"한", "글", "말", "\u1112\u1161", "."},
      {"क", "ष", "\u094D", "ि", "य", "।"},
      {"天", "地", "人", "。", "，", "ｶﾞ", "か\u3099"},
      {"ا", "ل", "\u064B", "ب", "،", "\u0600"}};
  const auto& letters = kAlphabets[static_cast<std::size_t>(random.integer(0, std::ssize(kAlphabets) - 1))];
  std::string text;
  while (text.size() < bytes) {
    for (std::int64_t count = random.integer(1, 7); count > 0; --count) {
      text += letters[static_cast<std::size_t>(random.integer(0, std::ssize(letters) - 1))];
    }
    text += random.once_in(9) ? "  " : random.once_in(30) ? "\n" : space;
  }
  return text;
}

// Long ones: of published cases, of words, and of both.
std::string long_text(test::Random& random, const GoldenTokenizer& golden) {
  const std::string_view space = random.once_in(4) ? "" : " ";
  const auto bytes = static_cast<std::size_t>(random.integer(5000, 30000));
  std::string text;
  while (text.size() < bytes) {
    const bool given = !golden.texts.empty() && random.once_in(2);
    text += given ? golden.texts[static_cast<std::size_t>(random.integer(0, std::ssize(golden.texts) - 1))]
                  : words(random, space, static_cast<std::size_t>(random.integer(1, 4000)));
    text += space;
  }
  return text;
}

// Of all ids of a text and what stands around it, the first so many, and what stands behind.
Ids cut(const Ids& whole, std::int64_t length, std::int64_t behind) {
  if (std::ssize(whole) <= length) return whole;
  Ids ids(whole.begin(), whole.begin() + (length - behind));
  ids.insert(ids.end(), whole.end() - behind, whole.end());
  return ids;
}

TEST(FirstTokens, AreThoseOfTheWholeText) {
  test::Random random(17);
  int cuts = 0;
  for (const GoldenTokenizer& golden : golden_tokenizers()) {
    const Tokenizer tokenizer = Tokenizer::parse(golden.described.dump());
    const TokensAround around = tokenizer.tokens_around();
    for (int n = 0; n < test::count(12, 3); ++n) {
      const std::string text = long_text(random, golden);
      const Ids whole = tokenizer.encode(text);
      for (const std::int64_t room : {0, 1, 7, 100, 601, 3000}) {
        const std::int64_t length = around.text + room;
        ASSERT_EQ(tokenizer.encode_within(text, length), cut(whole, length, around.behind))
            << golden.described.dump().substr(0, 600) << "\n"
            << room << ": " << text.substr(0, 400);
        cuts += length < std::ssize(whole) ? 1 : 0;
      }
    }
  }
  EXPECT_GE(cuts, 200);
}

TEST(FirstTokens, OfPairsAreThoseOfBothTexts) {
  test::Random random(18);
  for (const GoldenTokenizer& golden : golden_tokenizers()) {
    const Tokenizer tokenizer = Tokenizer::parse(golden.described.dump());
    const std::int64_t around = tokenizer.tokens_around().pair;
    for (int n = 0; n < test::count(4, 1); ++n) {
      const std::string first = random.once_in(3) ? "a b" : long_text(random, golden);
      const std::string second = random.once_in(3) ? "b" : long_text(random, golden);
      const Ids one = tokenizer.encode(first, SpecialTokens::without);
      const Ids two = tokenizer.encode(second, SpecialTokens::without);
      for (const std::int64_t room : {0, 1, 2, 3, 50, 601}) {
        const auto [n1, n2] = pair_lengths(std::ssize(one), std::ssize(two), room);
        const TokenPair pair = tokenizer.encode_pair_within(first, second, around + room);
        ASSERT_EQ(std::ssize(pair.ids), around + n1 + n2);
        // Both stand in it, one behind the other.
        const auto found = std::search(pair.ids.begin(), pair.ids.end(), one.begin(), one.begin() + n1);
        ASSERT_LE(found - pair.ids.begin(), around);
        ASSERT_NE(std::search(found + n1, pair.ids.end(), two.begin(), two.begin() + n2) - pair.ids.end(),
                  n2 > 0 ? 0 : 1)
            << room;
      }
    }
  }
}

// A part of a tokenizer, and the bytes that it was given.
class CountingNormalizer final : public Normalizer {
 public:
  CountingNormalizer(std::unique_ptr<Normalizer> part, std::size_t& bytes) : part_(std::move(part)), bytes_(bytes) {}
  void apply(std::string& text, Spare& spare, bool& whole_front) const override {
    bytes_ += text.size();
    if (part_ != nullptr) part_->apply(text, spare, whole_front);
  }

 private:
  std::unique_ptr<Normalizer> part_;
  std::size_t& bytes_;
};

// What all parts of a tokenizer see of a text does not grow with the text.
TEST(FirstTokens, TakeAsMuchOfALongTextAsTheyNeed) {
  test::Random random(19);
  std::string longer = words(random, " ", 2000);
  while (longer.size() < 2'000'000) longer += "the cat sat on the mat, and was glad. ";
  int bounded = 0;
  for (const GoldenTokenizer& golden : golden_tokenizers()) {
    Pipeline pipeline(files::JsonValue::parse_object("tokenizer.json", golden.described.dump()));
    if (!pipeline.splits_at_cuts) continue;
    std::size_t bytes = 0;
    pipeline.normalizer = std::make_unique<CountingNormalizer>(std::move(pipeline.normalizer), bytes);
    Scratch scratch;
    Ids ids;
    pipeline.append_first(longer, 200, scratch, ids);
    EXPECT_GE(ids.size(), 200u);
    EXPECT_LE(bytes, 20'000u) << golden.described.dump().substr(0, 300);
    bounded += bytes > 0 ? 1 : 0;
  }
  EXPECT_GE(bounded, 10);
}

// And neither does the memory of a model, whose piece is all of a text without spaces.
TEST(FirstTokens, OfALongPieceTakeLittleMemory) {
  test::Random random(20);
  const auto length = test::count<std::size_t>(300'000, 120'000);
  int bounded = 0;
  for (const GoldenTokenizer& golden : golden_tokenizers()) {
    const Pipeline pipeline(files::JsonValue::parse_object("tokenizer.json", golden.described.dump()));
    const json& model = golden.described.at("model");
    if (model.value("type", "") == "WordPiece") continue;
    // Characters that it knows: tokens of bytes may merge with any others.
    std::string letters;
    for (const char letter : std::string_view("etaoinshrdlu.,-")) {
      if (pipeline.model->id(std::string_view(&letter, 1))) letters += letter;
    }
    std::string piece;
    while (!letters.empty() && piece.size() < length) {
      piece += letters[static_cast<std::size_t>(random.integer(0, std::ssize(letters) - 1))];
    }
    Scratch scratch;
    Ids ids, whole;
    pipeline.model->append_first(piece, 100, scratch, ids);
    const std::size_t held = std::max({scratch.symbols.size(), scratch.scores.size(), scratch.next.size()});
    pipeline.model->append(piece, scratch, whole);
    ASSERT_LE(ids.size(), whole.size());
    ASSERT_TRUE(std::equal(ids.begin(), ids.end(), whole.begin()));
    ASSERT_GE(ids.size(), std::min<std::size_t>(whole.size(), 100));
    // Of merges with a prefix or suffix nobody knows the end.
    const auto has = [&](const char* key) { return model.contains(key) && model.at(key).is_string(); };
    if (has("end_of_word_suffix") || has("continuing_subword_prefix") || letters.size() < 10) continue;
    EXPECT_LE(held, length / 3) << golden.described.dump().substr(0, 300);
    ++bounded;
  }
  EXPECT_GE(bounded, 5);
}

TEST(FirstTokens, CutsLieBehindTwoLettersAndBeforeOne) {
  EXPECT_EQ(find_cut("ab cd", 0, 5), 2u);
  EXPECT_EQ(find_cut("ab cd", 2, 5), 2u);
  EXPECT_EQ(find_cut("ab cd", 3, 5), 0u);
  EXPECT_EQ(find_cut("ab cd", 0, 2), 0u);
  EXPECT_EQ(find_cut("a b", 0, 3), 0u);
  EXPECT_EQ(find_cut("a1 b", 0, 4), 0u);
  EXPECT_EQ(find_cut("ab  cd ef", 0, 9), 6u);
  EXPECT_EQ(find_cut("ab 天地 사람 x", 0, 100), 16u);
  EXPECT_EQ(find_cut("ab ", 0, 3), 0u);
  EXPECT_TRUE(has_no_letters("\u2581 ,"));
  EXPECT_FALSE(has_no_letters(" a"));
  EXPECT_FALSE(has_no_letters("\u0301"));
}

}  // namespace headlight::text::first_tokens_test
