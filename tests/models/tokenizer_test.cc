#include "headlight/models/tokenizer.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "models/scratch_folder.h"
#include "support/allocation_counter.h"
#include "support/golden.h"
#include "support/quick.h"
#include "support/random.h"

namespace headlight::models::tokenizer_test {

using test::file_error;
using test::ScratchFolder;

const Tokenizer& published() {
  static const Tokenizer tokenizer = Tokenizer::read(HEADLIGHT_SOURCE_DIR "/tests/data/bert_uncased_vocab.txt");
  return tokenizer;
}

std::vector<std::string> tiny_vocabulary() {
  return {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "ab", "##b", "##bc"};
}

// More than 2,000 lines of every kind of trouble, with the ids that Hugging Face's tokenizer gives them.
TEST(Tokenizer, GivesTheIdsOfThePublishedOne) {
  std::ifstream stream(test::golden_path("tokenizer_cases.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(stream, line); ++cases) {
    const auto one = nlohmann::json::parse(line);
    const auto text = one[0].get<std::string>();
    const auto ids = one[1].get<std::vector<std::int64_t>>();
    if (one.size() == 2) {
      ASSERT_EQ(published().encode(text, 512), ids) << line;
      continue;
    }
    TokenizerOptions options{
        .lower_case = one[3].get<bool>(), .strip_accents = {}, .split_ideographs = one[5].get<bool>()};
    if (!one[4].is_null()) options.strip_accents = one[4].get<bool>();
    static std::map<std::string, Tokenizer> others;
    const auto key = one[3].dump() + one[4].dump() + one[5].dump();
    if (!others.contains(key)) {
      others.emplace(key, Tokenizer::read(HEADLIGHT_SOURCE_DIR "/tests/data/bert_uncased_vocab.txt", options));
    }
    ASSERT_EQ(others.at(key).encode(text, one[2].get<std::int64_t>()), ids) << line;
  }
  EXPECT_GE(cases, 2000);
}

std::string utf8(std::int32_t codepoint) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(codepoint, bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length)};
}

// Every code point that there is, between two letters: removed, a space, a word of its own or part of one.
TEST(Tokenizer, TreatsEveryCodePointAsThePublishedOneDoes) {
  if (std::string(utf8proc_unicode_version()) != "15.0.0") {
    GTEST_SKIP() << "utf8proc has Unicode " << utf8proc_unicode_version() << "; the exceptions are those from 15.0.0";
  }
  const Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "ab"});
  std::map<std::int32_t, char> runs;
  for (const std::string& line : test::golden_lines("tokenizer_codepoints.txt")) {
    std::istringstream entries(line);
    for (std::string entry; entries >> entry;)
      runs[std::stoi(entry.substr(0, entry.size() - 1), nullptr, 16)] = entry.back();
  }
  ASSERT_EQ(runs.begin()->first, 0);
  const std::map<char, std::vector<std::int64_t>> kinds{
      {'j', {2, 7, 3}}, {'s', {2, 5, 6, 3}}, {'a', {2, 5, 1, 6, 3}}, {'u', {2, 1, 3}}};
  for (std::int32_t codepoint = 0; codepoint < 0x110000; codepoint += test::count(1, 7)) {
    if (codepoint >= 0xD800 && codepoint < 0xE000) continue;
    const char kind = std::prev(runs.upper_bound(codepoint))->second;
    ASSERT_EQ(tokenizer.encode("a" + utf8(codepoint) + "b", 8), kinds.at(kind)) << std::hex << codepoint;
  }
}

TEST(Tokenizer, TakesTheLongestPieceFromTheLeft) {
  const Tokenizer tokenizer(tiny_vocabulary());
  EXPECT_EQ(tokenizer.encode("a ab abb abbc abc", 32), (std::vector<std::int64_t>{2, 5, 7, 7, 8, 7, 9, 1, 3}));
  EXPECT_EQ(tokenizer.encode("AB\u0301[MASK]A", 32), (std::vector<std::int64_t>{2, 7, 4, 5, 3}));
  EXPECT_EQ(tokenizer.token(9), "##bc");
  EXPECT_EQ(tokenizer.id("##bc"), 9);
  EXPECT_EQ(tokenizer.id("c"), std::nullopt);
  EXPECT_EQ(tokenizer.size(), 10);
  EXPECT_EQ(tokenizer.pad_id(), 0);
  EXPECT_THROW((void)tokenizer.token(10), std::invalid_argument);
  EXPECT_THROW((void)tokenizer.token(-1), std::invalid_argument);
}

constexpr std::size_t kMostTokens = std::size_t{1} << 21, kMostBytes = std::size_t{32} << 20;

TEST(Tokenizer, FULL_TheLargestVocabularyHasItsIds) {
  std::vector<std::string> many = tiny_vocabulary();
  many.resize(kMostTokens - 2);
  many.insert(many.end(), {"last", "##s"});
  const Tokenizer tokenizer(std::move(many));
  EXPECT_EQ(tokenizer.encode("ab lasts", 8), (std::vector<std::int64_t>{2, 7, kMostTokens - 2, kMostTokens - 1, 3}));
}

TEST(Tokenizer, RefusesAVocabularyThatIsTooLarge) {
  const auto refusal = [](std::vector<std::string> vocabulary) -> std::string {
    try {
      const Tokenizer tokenizer(std::move(vocabulary));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "is none";
  };
  EXPECT_EQ(refusal(std::vector<std::string>(kMostTokens + 1)),
            "tokenizer: vocabulary has 2097153 tokens, expected at most 2097152");

  std::vector<std::string> long_ones = tiny_vocabulary();
  std::size_t bytes = 0;
  for (const std::string& token : long_ones) bytes += token.size();
  long_ones.emplace_back(kMostBytes - bytes, 'x');
  EXPECT_EQ(refusal(long_ones), "is none");
  long_ones.back() += 'x';
  EXPECT_EQ(refusal(long_ones), "tokenizer: vocabulary has 33554433 bytes, expected at most 33554432");
}

TEST(Tokenizer, CutsAtTheMaximum) {
  const Tokenizer tokenizer(tiny_vocabulary());
  EXPECT_EQ(tokenizer.encode("a b abb", 2), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tokenizer.encode("a b abb", 3), (std::vector<std::int64_t>{2, 5, 3}));
  EXPECT_EQ(tokenizer.encode("a b abb", 5), (std::vector<std::int64_t>{2, 5, 6, 7, 3}));  // inside a word
  EXPECT_EQ(tokenizer.encode("a b abb", 6), (std::vector<std::int64_t>{2, 5, 6, 7, 8, 3}));
  EXPECT_EQ(tokenizer.encode("[MASK][SEP]", 3), (std::vector<std::int64_t>{2, 4, 3}));
  EXPECT_THROW((void)tokenizer.encode("a", 1), std::invalid_argument);
}

TEST(Tokenizer, NamesTheByteThatIsNotUtf8) {
  const std::pair<std::string, std::string> cases[] = {
      {"ab\xFF", "byte 2"},
      {"\xC3", "byte 0"},                   // ends too early
      {"a\xED\xA0\x80", "byte 1"},          // a surrogate
      {"\xC0\x80", "byte 0"},               // longer than needed
      {"[CLS]\xF4\x90\x80\x80", "byte 5"},  // beyond U+10FFFF
      {std::string("\0\x80", 2), "byte 1: '\\x80'"},
      {std::string(3000, 'a') + "\xFE", "byte 3000"},  // even beyond what is kept
  };
  for (const auto& [text, says] : cases) {
    try {
      (void)published().encode(text, 8);
      ADD_FAILURE() << says;
    } catch (const std::invalid_argument& error) {
      EXPECT_TRUE(test::contains(error.what(), "not UTF-8", says));
    }
  }
}

TEST(Tokenizer, ReadsVocabulariesAsTheyCome) {
  const ScratchFolder folder;
  const std::string plain = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n";
  std::string windows = "\xEF\xBB\xBF";
  for (const char byte : plain) windows += byte == '\n' ? "\r\n" : std::string(1, byte);
  for (const std::string& bytes : {plain, plain.substr(0, plain.size() - 1), windows}) {
    const auto tokenizer = Tokenizer::read(folder.write("vocab.txt", bytes));
    EXPECT_EQ(tokenizer.size(), 6);
    EXPECT_EQ(tokenizer.encode("a b [MASK]", 8), (std::vector<std::int64_t>{2, 4, 5, 1, 1, 1, 3}));
  }
  // Empty lines keep their numbers; of a repeated token the last counts.
  const auto odd = Tokenizer::read(folder.write("vocab.txt", "\n[PAD]\n[UNK]\na\n\n[CLS]\n[SEP]\na\n\n"));
  EXPECT_EQ(odd.size(), 9);
  EXPECT_EQ(odd.encode("a", 8), (std::vector<std::int64_t>{5, 7, 6}));
}

TEST(Tokenizer, RefusesOtherVocabularies) {
  const ScratchFolder folder;
  const auto read = [&](const std::string& bytes) {
    return file_error([&] { (void)Tokenizer::read(folder.write("vocab.txt", bytes)); });
  };
  EXPECT_TRUE(test::contains(read(""), "vocab.txt: lacks the token [PAD]"));
  EXPECT_TRUE(test::contains(read("[PAD]\n[UNK]\n[SEP]\n"), "vocab.txt: lacks the token [CLS]"));
  EXPECT_TRUE(test::contains(read("[PAD]\n[UNK]\n[CLS]\n[sep]"), "lacks the token [SEP]"));
  EXPECT_TRUE(test::contains(read("[PAD]\na\xFF\n"), "vocab.txt: line 2 is not UTF-8: 'a\\xff'"));
  EXPECT_TRUE(test::contains(read(std::string((1u << 21) + 1, '\n')), "more than 2097152 lines"));
  EXPECT_TRUE(test::contains(read(std::string((32u << 20) + 1, 'a')), "has 33554433 bytes, expected at most 33554432"));
  EXPECT_TRUE(test::contains(file_error([&] { (void)Tokenizer::read(folder.path("none")); }), "cannot open"));
  EXPECT_TRUE(test::contains(file_error([] { Tokenizer({"[PAD]", "[CLS]"}); }), "vocabulary: lacks the token [UNK]"));
}

// Random bytes are refused or read; random code points are read, and never give more or other ids than allowed.
TEST(Tokenizer, SurvivesAnything) {
  test::Random random(11);
  for (int n = test::count(20'000, 2'000); n > 0; --n) {
    std::string text;
    const bool bytes = random.once_in(2);
    for (std::int64_t length = random.integer(0, 40); length > 0; --length) {
      const auto last = std::int64_t{1} << random.integer(5, 21);
      const auto codepoint = static_cast<std::int32_t>(random.integer(0, std::min<std::int64_t>(last, 0x10FFFF)));
      text += bytes ? std::string(1, static_cast<char>(random.integer(0, 255)))
                    : utf8(codepoint >= 0xD800 && codepoint < 0xE000 ? '[' : codepoint);
    }
    const auto most = random.integer(2, 20);
    std::vector<std::int64_t> ids;
    try {
      ids = published().encode(text, most);
    } catch (const std::invalid_argument&) {
      EXPECT_TRUE(bytes) << text;
      continue;
    }
    ASSERT_GE(ids.size(), 2u);
    ASSERT_LE(ids.size(), static_cast<std::size_t>(most));
    ASSERT_EQ(ids.front(), 101);
    ASSERT_EQ(ids.back(), 102);
    for (const std::int64_t id : ids) ASSERT_TRUE(id >= 0 && id < published().size());
  }
}

// No text takes more than a little over linear time: long words, long runs of marks in every order, brackets, spaces.
TEST(Tokenizer, LongTextsStayCheap) {
  std::string marks = "a";
  for (int n = 0; n < 200'000; ++n) marks += n % 2 == 0 ? "\u0301" : "\u0323";
  const std::string a_million(1'000'000, 'a');
  const std::string brackets(1'000'000, '[');
  const std::string spaces(1'000'000, ' ');
  EXPECT_EQ(published().encode(marks, 512).size(), 3u);
  EXPECT_EQ(published().encode(a_million, 512), (std::vector<std::int64_t>{101, 100, 102}));
  EXPECT_EQ(published().encode(brackets, 512).size(), 512u);
  EXPECT_EQ(published().encode(spaces, 512).size(), 2u);
}

// Nothing but the ids takes memory: not words, however long, nor runs of marks.
TEST(Tokenizer, TakesNoMemoryForWords) {
  TokenizerOptions whole;
  whole.whole_words = true;
  const Tokenizer whole_words({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "马路"}, whole);
  std::string long_ones = std::string(1'000'000, 'a') + " ";
  for (int n = 0; n < 1000; ++n) long_ones += "\u302F\u302E";  // marks that stay, in the wrong order
  for (int n = 0; n < 1000; ++n) long_ones += "马路";
  std::vector<std::int64_t> ids;
  ids.reserve(5000);
  for (const Tokenizer* const tokenizer : {&published(), &whole_words}) {
    ids.clear();
    const test::AllocationCounter counter;
    tokenizer->append(long_ones, 2000, ids);
    const std::int64_t allocations = counter.count();
    EXPECT_EQ(allocations, 0);
    EXPECT_EQ(ids, tokenizer->encode(long_ones, 2000));
    tokenizer->append("one more", 2000, ids);
    const std::vector<std::int64_t> more = tokenizer->encode("one more", 2000);
    EXPECT_TRUE(std::equal(more.rbegin(), more.rend(), ids.rbegin()));
  }
}

// What comes a part at a time is what comes at once.
TEST(Tokenizer, WholeWordsOfLongTextsAreThoseOfTheirParts) {
  TokenizerOptions options;
  options.whole_words = true;
  const std::string longest(90, 'b');
  const Tokenizer words({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "马路", "é", longest, ","}, options);
  for (const std::string& unit : {std::string("马路"), std::string("é,"), longest + ",", std::string("zz,")}) {
    const std::vector<std::int64_t> one = words.encode(unit, 100);
    std::string text;
    for (int n = 0; n < 700; ++n) text += unit;
    const std::vector<std::int64_t> all = words.encode(text, 100'000);
    ASSERT_EQ(all.size(), 700 * (one.size() - 2) + 2) << unit;
    for (std::size_t n = 0; n + 2 < all.size(); ++n) ASSERT_EQ(all[n + 1], one[1 + n % (one.size() - 2)]) << unit;
  }
}

TEST(Tokenizer, WholeWordsAreTheLongestFromTheLeft) {
  TokenizerOptions options;
  options.whole_words = true;
  const Tokenizer words({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "didn't", "马", "马路", "机器", "机器人", ",", "."},
                        options);
  const auto ids = [&](std::string_view text) {
    std::vector<std::int64_t> inside = words.encode(text, 64);
    EXPECT_EQ(inside.front(), 2);
    EXPECT_EQ(inside.back(), 3);
    return std::vector<std::int64_t>(inside.begin() + 1, inside.end() - 1);
  };
  using Ids = std::vector<std::int64_t>;
  EXPECT_EQ(ids("The didn't."), (Ids{4, 5, 11}));
  EXPECT_EQ(ids("机器人马路,马机器"), (Ids{9, 7, 10, 6, 8}));
  EXPECT_EQ(ids("机器 人\tthe\n马"), (Ids{8, 1, 4, 6}));
  // A word of letters ends only where the letters do; it may stand beside ideographs and marks.
  EXPECT_EQ(ids("there the马the.the"), (Ids{1, 4, 6, 4, 11, 4}));
  EXPECT_EQ(ids("zebra, 吃吃 didn't-the"), (Ids{1, 10, 1, 1, 5, 1, 4}));
  EXPECT_EQ(ids("didn'"), (Ids{1, 1}));
  EXPECT_EQ(ids("[SEP]the"), (Ids{3, 4}));
  EXPECT_EQ(ids("   "), Ids{});
  EXPECT_EQ(words.encode("机器人马路,马机器", 4), (Ids{2, 9, 7, 3}));
  std::string many;
  for (int n = 0; n < 100'000; ++n) many += "机器人";
  EXPECT_EQ(words.encode(many, 1'000'000).size(), 100'002u);
  EXPECT_EQ(words.encode(std::string(1'000'000, 'a'), 512), (Ids{2, 1, 3}));
}

// One, not the vocabulary: and once, however often, and by however many threads, it is asked for.
TEST(Tokenizer, TokensBecomeStringsWhenTheyAreAskedFor) {
  const Tokenizer tokenizer = Tokenizer::read(HEADLIGHT_SOURCE_DIR "/tests/data/bert_uncased_vocab.txt");
  const test::AllocationCounter counter;
  const std::string* const first = &tokenizer.token(101);
  const std::int64_t allocations = counter.count();
  EXPECT_LE(allocations, 2);  // its entry, and where no short string is kept within, its bytes
  std::vector<std::vector<const std::string*>> found(4);
  std::vector<std::thread> threads;
  for (auto& strings : found) {
    threads.emplace_back([&strings, &tokenizer] {
      for (std::int64_t id = 0; id < 2000; ++id) strings.push_back(&tokenizer.token(id));
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& strings : found) {
    ASSERT_EQ(strings, found[0]);
    EXPECT_EQ(strings[101], first);
  }
  for (std::int64_t id = 0; id < 2000; ++id) {
    const auto place = static_cast<std::size_t>(id);
    ASSERT_EQ(*found[0][place], tokenizer.find_token(id));
    ASSERT_EQ(*found[0][place], tokenizer.vocabulary()[place]);
  }
}

TEST(Tokenizer, CopiesAndThreadsShareOne) {
  std::vector<std::vector<std::int64_t>> results(4);
  {
    const Tokenizer copy = published();
    std::vector<std::thread> threads;
    for (auto& result : results) threads.emplace_back([&result, copy] { result = copy.encode("unaffable café", 16); });
    for (auto& thread : threads) thread.join();
  }
  for (const auto& result : results) EXPECT_EQ(result, (std::vector<std::int64_t>{101, 14477, 20961, 3468, 7668, 102}));
}

}  // namespace headlight::models::tokenizer_test
