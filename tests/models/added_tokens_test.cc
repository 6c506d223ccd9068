#include "text/added_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/tokenizer.h"
#include "models/scratch_folder.h"
#include "support/random.h"
#include "text/bert_words.h"
#include "text/scratch.h"

namespace headlight::models::added_tokens_test {

using text::AddedTokens;

using Found = std::vector<std::string>;

// The parts of the text that tokens take, as "id:part".
Found found(const AddedTokens& tokens, std::string_view text) {
  Found parts;
  AddedTokens::Search search(tokens, text);
  for (AddedTokens::Match match = search.next(); match.id >= 0; match = search.next()) {
    parts.push_back(std::to_string(match.id) + ":" + std::string(text.substr(match.begin, match.end - match.begin)));
  }
  return parts;
}

AddedTokens tokens_of(const std::vector<AddedToken>& list) {
  AddedTokens tokens;
  for (const AddedToken& token : list)
    tokens.add(token.content, {token.id, token.single_word, token.lstrip, token.rstrip});
  EXPECT_EQ(tokens.sort(), std::nullopt);
  return tokens;
}

TEST(AddedTokens, OfThoseThatBeginFirstTheLongest) {
  const AddedTokens tokens = tokens_of({{.content = "ab", .id = 1},
                                        {.content = "abcd", .id = 2},
                                        {.content = "bc", .id = 3},
                                        {.content = "\xF0\x9F\x98\x80", .id = 4}});
  EXPECT_EQ(found(tokens, "xabcdab"), (Found{"2:abcd", "1:ab"}));
  EXPECT_EQ(found(tokens, "abcab\xF0\x9F\x98\x80"), (Found{"1:ab", "1:ab", "4:\xF0\x9F\x98\x80"}));
  EXPECT_EQ(found(tokens, "xbcx"), (Found{"3:bc"}));
  EXPECT_EQ(found(tokens, ""), Found());
  EXPECT_EQ(found(AddedTokens(), "ab"), Found());
}

TEST(AddedTokens, WhiteSpaceAroundThem) {
  const AddedTokens tokens = tokens_of({{.content = "l", .id = 1, .lstrip = true},
                                        {.content = "r", .id = 2, .rstrip = true},
                                        {.content = " s", .id = 3}});
  EXPECT_EQ(found(tokens, "a \u3000\tl b"), (Found{"1: \u3000\tl"}));
  EXPECT_EQ(found(tokens, "r \n l"), (Found{"2:r \n ", "1:l"}));
  EXPECT_EQ(found(tokens, "r s"), (Found{"2:r ", "3:s"}));
  EXPECT_EQ(found(tokens, "  l"), (Found{"1:  l"}));
}

TEST(AddedTokens, SingleWordsAlone) {
  const AddedTokens tokens = tokens_of({{.content = "ab", .id = 1, .single_word = true}, {.content = "b", .id = 2}});
  EXPECT_EQ(found(tokens, "ab,ab ab"), (Found{"1:ab", "1:ab", "1:ab"}));
  for (const char* text : {"abc", "xab", "ab_", "1ab", "ab\u0301", "\u4e2dab", "ab\u24b6"})
    EXPECT_EQ(found(tokens, text), Found()) << text;
  // What is discarded is not looked into.
  EXPECT_EQ(found(tokens, "xabb"), (Found{"2:b"}));
}

TEST(AddedTokens, WhatWasAddedTwiceIsNamed) {
  AddedTokens tokens;
  for (const char* content : {"b", "a", "b"}) tokens.add(content, {});
  EXPECT_EQ(tokens.sort(), "b");
}

// Beside a search that tries every token at every place.
TEST(AddedTokens, AgreeWithTryingThemAll) {
  test::Random random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<AddedToken> list;
    for (std::int64_t n = random.integer(1, 6); n > 0; --n) {
      std::string content;
      for (std::int64_t length = random.integer(1, 4); length > 0; --length)
        content += static_cast<char>('a' + random.integer(0, 2));
      bool known = false;
      for (const AddedToken& token : list) known = known || token.content == content;
      if (!known) list.push_back({.content = content, .id = n});
    }
    std::string text;
    for (std::int64_t length = random.integer(0, 40); length > 0; --length)
      text += static_cast<char>('a' + random.integer(0, 3));
    Found expected;
    for (std::size_t at = 0; at < text.size();) {
      const AddedToken* longest = nullptr;
      for (const AddedToken& token : list) {
        if (std::string_view(text).substr(at).starts_with(token.content) &&
            (longest == nullptr || token.content.size() > longest->content.size())) {
          longest = &token;
        }
      }
      if (longest != nullptr) expected.push_back(std::to_string(longest->id) + ":" + longest->content);
      at += longest == nullptr ? 1 : longest->content.size();
    }
    ASSERT_EQ(found(tokens_of(list), text), expected) << text;
  }
}

// Takes so many words.
class SomeWords final : public text::WordSink {
 public:
  explicit SomeWords(std::size_t most) : most_(most) {}
  bool take_word(std::string_view word, std::size_t code_points) override {
    words.push_back(std::to_string(code_points) + ":" + std::string(word));
    return words.size() < most_;
  }
  bool take_chunk(std::u32string_view, bool, std::size_t&) override { return false; }

  Found words;

 private:
  std::size_t most_;
};

// Words beside normalised tokens come until no more are wanted.
TEST(AddedTokens, WordsBesideThemStop) {
  const std::string text = " caf\u00e9, (a)\u3000b" + std::string(200, 'x') + "-- ";
  const Found all{"4:caf\u00e9", "1:,", "1:(", "1:a", "1:)", "201:b" + std::string(200, 'x'), "1:-", "1:-"};
  for (std::size_t most = 1; most <= all.size() + 1; ++most) {
    SomeWords some(most);
    EXPECT_EQ(text::split_normalized(text, some), most > all.size()) << most;
    EXPECT_EQ(some.words, Found(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()))));
  }
}

// Of a long text as much is normalised as its first tokens need, and they are those of the whole text.
TEST(AddedTokens, FULL_NormalizedOnesOfLongTexts) {
  const std::vector<std::string> vocabulary{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a",
                                            "b",     "##a",   "##b",   "ab ab", "caf\u00e9"};
  test::Random random(6);
  for (const bool crosses : {false, true}) {  // cuts lie before spaces
    TokenizerOptions options;
    options.strip_accents = false;
    options.added_tokens = {
        {{.content = crosses ? "AB AB" : "CAF\u00c9", .id = crosses ? 8 : 9, .single_word = true, .normalized = true}}};
    const Tokenizer tokenizer(vocabulary, options);
    for (int n = 0; n < 20; ++n) {
      std::string text;
      while (text.size() < 200'000) {
        const std::int64_t kind = random.integer(0, 5);
        text += kind == 0   ? "Caf\u00e9 "
                : kind == 1 ? "ab ab "
                : kind == 2 ? "b, "
                : kind == 3 ? "aba "
                : kind == 4 ? "x "
                            : "abba";
      }
      const std::vector<std::int64_t> whole = tokenizer.encode(text, std::int64_t{1} << 40);
      for (const std::int64_t length : {2, 3, 50, 511, 5000}) {
        std::vector<std::int64_t> expected(whole.begin(), whole.begin() + length - 1), ids;
        expected.push_back(whole.back());
        text::Scratch scratch;
        tokenizer.append(text, length, scratch, ids);
        ASSERT_EQ(ids, expected) << length;
        if (!crosses && length < 1000) {
          EXPECT_LE(scratch.bytes(), 50'000u) << length;
        }
      }
    }
  }
}

TEST(AddedTokens, OfATokenizer) {
  TokenizerOptions options;
  options.added_tokens = {{{.content = "[PAD]", .id = 0},
                           {.content = "caf\u00c9", .id = 7, .normalized = true},
                           {.content = "Big", .id = 9}}};
  const Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "big"}, options);
  EXPECT_EQ(tokenizer.size(), 10);
  EXPECT_EQ(tokenizer.token(9), "Big");
  EXPECT_EQ(tokenizer.token(8), "");
  EXPECT_EQ(tokenizer.id("Big"), 9);
  EXPECT_EQ(tokenizer.unknown_id(), 1);
  EXPECT_EQ(tokenizer.vocabulary().size(), 6u);
  using Ids = std::vector<std::int64_t>;
  EXPECT_EQ(tokenizer.encode("Big big BIG CAFE caf\u00e9s", 32), (Ids{2, 9, 5, 5, 7, 7, 1, 3}));
  EXPECT_EQ(tokenizer.encode("[PAD][CLS]", 32), (Ids{2, 0, 1, 1, 1, 3}));  // that is no added token
  EXPECT_EQ(tokenizer.encode("a Big cafe", 4), (Ids{2, 4, 9, 3}));
  const auto refused = [](AddedToken token, bool whole_words = false) {
    TokenizerOptions with;
    with.whole_words = whole_words;
    with.added_tokens = {{token, {.content = "x", .id = 5, .normalized = true}}};
    return test::file_error([&] { Tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]"}, with); });
  };
  EXPECT_TRUE(test::contains(refused({.content = "", .id = 4}), "expected one that is not empty"));
  EXPECT_TRUE(
      test::contains(refused({.content = std::string(1025, 'a'), .id = 4}), "expected at most 1024 bytes of UTF-8"));
  EXPECT_TRUE(test::contains(refused({.content = "\xFF", .id = 4}), "expected at most 1024 bytes of UTF-8"));
  EXPECT_TRUE(test::contains(refused({.content = "y", .id = -1}), "with the id -1, expected 0 to"));
  EXPECT_TRUE(
      test::contains(refused({.content = "X", .id = 4, .normalized = true}), "two added tokens that are found as 'x'"));
  EXPECT_TRUE(test::contains(refused({.content = "\u0301", .id = 4, .normalized = true}),
                             "of which normalising leaves nothing"));
  EXPECT_TRUE(
      test::contains(refused({.content = "y", .id = 4, .normalized = true}, true), "expected none with whole_words"));
}

}  // namespace headlight::models::added_tokens_test
