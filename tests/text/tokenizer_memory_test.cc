// What tokenizers keep for the next call, and that ids do not depend on it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headlight/text/tokenizer.h"
#include "support/allocation_counter.h"
#include "support/random.h"
#include "text/golden_tokenizers.h"
#include "text/idle_pool.h"
#include "text/scratch.h"
#include "text/word_cache.h"

namespace headlight::text::tokenizer_memory_test {

using test::golden_tokenizers;
using test::GoldenTokenizer;
using Ids = std::vector<std::int64_t>;

TEST(TokenizerMemory, NothingIsAllocatedAfterReserve) {
  for (const GoldenTokenizer& golden : golden_tokenizers()) {
    const Tokenizer tokenizer = Tokenizer::parse(golden.described.dump());
    Scratch scratch;
    scratch.reserve(64);
    Ids ids;
    ids.reserve(64);
    for (const std::string& text : golden.texts) {
      ids.clear();
      const test::AllocationCounter counter;
      tokenizer.append_within(text, 64, scratch, ids);
      const std::int64_t allocations = counter.count();
      ASSERT_EQ(allocations, 0) << golden.described.dump().substr(0, 300) << "\n" << text;
    }
  }
}

// Whatever came before, from one thread or several.
TEST(TokenizerMemory, IdsDoNotDependOnEarlierCalls) {
  test::Random random(23);
  for (const GoldenTokenizer& golden : golden_tokenizers()) {
    const Tokenizer tokenizer = Tokenizer::parse(golden.described.dump());
    std::vector<std::string> texts;
    std::vector<Ids> expected;
    for (int n = 0; n < 20 && !golden.texts.empty(); ++n) {
      std::string text;
      for (int part = 0; part < 5; ++part) {
        text += golden.texts[static_cast<std::size_t>(random.integer(0, std::ssize(golden.texts) - 1))];
        if (random.once_in(2)) text += ' ';
      }
      // A tokenizer that has done nothing else.
      expected.push_back(Tokenizer::parse(golden.described.dump()).encode(text));
      texts.push_back(std::move(text));
    }
    std::vector<std::thread> threads;
    std::vector<std::vector<Ids>> found(3, std::vector<Ids>(texts.size()));
    for (std::vector<Ids>& of_thread : found) {
      threads.emplace_back([&] {
        for (int again = 0; again < 2; ++again) {
          for (std::size_t n = 0; n < texts.size(); ++n) of_thread[n] = tokenizer.encode(texts[n]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<Ids>& of_thread : found)
      ASSERT_EQ(of_thread, expected) << golden.described.dump().substr(0, 300);
  }
}

// Long texts leave no memory behind.
TEST(TokenizerMemory, LongTextsAreForgotten) {
  Scratch scratch;
  const std::size_t before = scratch.bytes();
  scratch.symbols.resize(1'000'000);
  scratch.heap.resize(1'000'000);
  scratch.written[7].resize(1'000'000);
  scratch.forget_long_texts();
  EXPECT_EQ(scratch.bytes(), before);
  scratch.symbols.resize(100);
  scratch.forget_long_texts();
  EXPECT_EQ(scratch.symbols.size(), 100u);
}

TEST(TokenizerMemory, WhatWasReservedRemains) {
  for (const std::size_t tokens : {std::size_t{64}, std::size_t{8192}}) {
    Scratch scratch;
    scratch.reserve(tokens);
    const std::size_t before = scratch.bytes();
    scratch.symbols.resize(1'000'000);
    scratch.spare.text.resize(10'000'000);
    scratch.forget_long_texts();
    EXPECT_EQ(scratch.bytes(), before);
  }
}

// However a call ends.
TEST(TokenizerMemory, LongTextsAreForgottenWhereACallThrows) {
  IdlePool<Scratch> pool;
  const auto refuse = [](Scratch& scratch) {
    scratch.heap.resize(1'000'000);
    throw std::invalid_argument("a text");
  };
  EXPECT_THROW(refuse(*pool.take()), std::invalid_argument);
  EXPECT_LE(pool.take()->bytes(), Scratch::kKept);
}

// Many buffers that are not long each are much together.
TEST(TokenizerMemory, WhatIsKeptIsBounded) {
  Scratch scratch;
  scratch.words.reserve();
  for (const std::size_t size : {std::size_t{1000}, std::size_t{20'000}, std::size_t{60'000}, std::size_t{70'000}}) {
    for (auto* const list : {&scratch.symbols, &scratch.next, &scratch.previous, &scratch.ends}) list->resize(size);
    scratch.heap.resize(size);
    scratch.scores.resize(size);
    for (std::string& one : scratch.written) one.resize(size);
    scratch.forget_long_texts();
    EXPECT_LE(scratch.bytes(), std::size_t{2} << 20) << size;
  }
}

// A word is found with the ids that were kept for it, or not at all.
TEST(WordCache, FindsWhatItKept) {
  test::Random random(24);
  WordCache cache;
  Ids ids;
  EXPECT_FALSE(cache.find("word", ids));
  // Few letters: words share beginnings, ends and sizes. The ids say which word it is.
  const auto ids_of = [](const std::string& word) {
    std::uint32_t hash = 1;
    for (const char byte : word) hash = hash * 31 + static_cast<unsigned char>(byte);
    return Ids(1 + hash % 7, static_cast<std::int64_t>(hash));
  };
  int found = 0;
  for (int n = 0; n < 20000; ++n) {
    std::string word(static_cast<std::size_t>(random.integer(1, 40)), 'a');
    for (char& byte : word) byte = random.once_in(9) ? '\0' : random.once_in(3) ? '\xFF' : 'a';
    if (n % 2 == 1) word = std::string(static_cast<std::size_t>(random.integer(1, 40)), word[0]);
    ids = {5};
    if (cache.find(word, ids)) {
      ++found;
      Ids expected = ids_of(word);
      expected.insert(expected.begin(), 5);
      ASSERT_EQ(ids, expected);
      ASSERT_LE(word.size(), 31u);
    } else {
      ASSERT_EQ(ids, Ids{5});
      Ids kept = ids_of(word);
      kept.insert(kept.begin(), {1, 2});
      cache.keep(word, kept, 2);
    }
  }
  EXPECT_GE(found, 1000);
  // Too many ids are not kept.
  cache.keep("many", Ids(8, 1), 0);
  EXPECT_FALSE(cache.find("many", ids));
  EXPECT_LE(cache.bytes(), std::size_t{1} << 20);
}

}  // namespace headlight::text::tokenizer_memory_test
