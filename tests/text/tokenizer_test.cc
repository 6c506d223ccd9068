#include "headlight/text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "models/scratch_folder.h"
#include "support/quick.h"
#include "text/utf8.h"

namespace headlight::text::tokenizer_test {

using Ids = std::vector<std::int64_t>;

// ab, abab … by merges of rising rank; every other letter is unknown.
constexpr const char* kPairs =
    R"({"model":{"type":"BPE","unk_token":"?","vocab":{"?":0,"a":1,"b":2,"ab":3,"abab":4,"ba":5},)"
    R"("merges":["a b",["ab","ab"],"b a"]}})";

TEST(TextTokenizer, MergesTheLowestRankFirst) {
  const Tokenizer tokenizer = Tokenizer::parse(kPairs);
  EXPECT_EQ(tokenizer.encode("bab"), (Ids{2, 3}));
  EXPECT_EQ(tokenizer.encode("ababab"), (Ids{4, 3}));
  EXPECT_EQ(tokenizer.encode("bba"), (Ids{2, 5}));
  EXPECT_EQ(tokenizer.encode("axb"), (Ids{1, 0, 2}));
  EXPECT_EQ(tokenizer.encode(""), Ids());
  EXPECT_EQ(tokenizer.encode_pair("a", "b"), (Ids{1, 2}));
  EXPECT_EQ(tokenizer.decode({4, 1}), "abab a");
  EXPECT_EQ(tokenizer.token(3), "ab");
  EXPECT_EQ(tokenizer.token(6), std::nullopt);
  EXPECT_EQ(tokenizer.id("ba"), 5);
  EXPECT_EQ(tokenizer.id("x"), std::nullopt);
  EXPECT_EQ(tokenizer.size(), 6);
}

// What merges one by one from the left, the lowest rank first, as the definition says.
Ids merged(const std::string& text) {
  const std::vector<std::pair<std::string, std::string>> merges{{"a", "b"}, {"ab", "ab"}, {"b", "a"}};
  std::vector<std::string> parts;
  for (const char letter : text) parts.emplace_back(1, letter);
  for (bool found = true; found;) {
    found = false;
    for (const auto& [left, right] : merges) {
      for (std::size_t n = 0; !found && n + 1 < parts.size(); ++n) {
        if (parts[n] != left || parts[n + 1] != right) continue;
        parts[n] += right;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(n) + 1);
        found = true;
      }
      if (found) break;
    }
  }
  Ids ids;
  for (const std::string& part : parts) ids.push_back(*Tokenizer::parse(kPairs).id(part));
  return ids;
}

TEST(TextTokenizer, LongPiecesMergeAsShortOnes) {
  const Tokenizer tokenizer = Tokenizer::parse(kPairs);
  std::mt19937 draw(1);
  for (std::size_t length = 1; length < 200; length += 7) {
    std::string text;
    while (text.size() < length) text += draw() % 2 == 0 ? 'a' : 'b';
    ASSERT_EQ(tokenizer.encode(text), merged(text)) << text;
  }
}

// Whoever writes the text chooses how long it takes: a megabyte of anything is done in seconds.
TEST(TextTokenizer, NoTextTakesLong) {
  const std::string unigram =
      R"({"normalizer":{"type":"NFKC"},"model":{"type":"Unigram","unk_id":0,"vocab":[["?",0],["a",-1],["aa",-1.5],["aaaaaaaa",-2]]}})";
  const std::string pieces =
      R"({"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"WordPiece","unk_token":"?","continuing_subword_prefix":"##",)"
      R"("max_input_chars_per_word":1000000,"vocab":{"?":0,"a":1,"##a":2,"##aaaaaaaa":3}}})";
  const std::size_t size = test::count(std::size_t{1} << 20, std::size_t{1} << 17);
  const auto began = std::chrono::steady_clock::now();
  for (const std::string& file : {std::string(kPairs), unigram, pieces}) {
    const Tokenizer tokenizer = Tokenizer::parse(file);
    for (const char* const part : {"a", "ab", " ", "\u0301\u0316", "\xF0\x9F\x98\x80", ".", "\r\n"}) {
      std::string text;
      while (text.size() < size) text += part;
      EXPECT_LE(tokenizer.encode(text).size(), text.size());
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
}

TEST(TextTokenizer, ManyThreadsUseOne) {
  const Tokenizer tokenizer = Tokenizer::parse(kPairs);
  std::vector<std::thread> threads;
  std::vector<Ids> found(4);
  for (Ids& ids : found) threads.emplace_back([&, copy = tokenizer] { ids = copy.encode("abababab"); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_EQ(ids, (Ids{4, 4}));
}

TEST(TextTokenizer, ReadsAFileOrItsFolder) {
  const test::ScratchFolder folder;
  const std::string path = folder.write("tokenizer.json", kPairs);
  EXPECT_EQ(Tokenizer::read(path).encode("ab"), Ids{3});
  EXPECT_EQ(Tokenizer::read(folder.path()).encode("ab"), Ids{3});
}

TEST(TextTokenizer, WhatIsNoUtf8BecomesReplacements) {
  EXPECT_EQ(valid_utf8("a\xE4\xB8\xAD\xE4\xB8z\xF0\x9F\x98\xFF\xC0\x80"), "a\u4E2D\uFFFDz\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(valid_utf8("\xED\xA0\x80\xF4\x90\xE0\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
}

}  // namespace headlight::text::tokenizer_test
