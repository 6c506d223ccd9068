// The tree of a model's tokens, beside a search of the list.
#include "text/trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/quick.h"

namespace headlight::text::trie_test {

// Tokens and their tree.
struct ListAndTrie {
  explicit ListAndTrie(const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) list.add(token);
    TableLimit none;
    trie.build(list, none);
  }
  TokenList list;
  Trie trie;
};

// Of each beginning of a text the token that it is, as far as any token goes on.
std::vector<std::uint32_t> walked(const Trie& trie, std::string_view text) {
  std::vector<std::uint32_t> ids;
  Trie::Walk walk(trie);
  for (const char byte : text) {
    if (!walk.advance(byte)) break;
    ids.push_back(walk.token());
  }
  return ids;
}

std::vector<std::uint32_t> searched(const std::map<std::string, std::uint32_t>& tokens, std::string_view text) {
  std::vector<std::uint32_t> ids;
  for (std::size_t size = 1; size <= text.size(); ++size) {
    const std::string beginning(text.substr(0, size));
    const auto found = tokens.lower_bound(beginning);
    if (found == tokens.end() || !found->first.starts_with(beginning)) break;
    ids.push_back(found->first == beginning ? found->second : Trie::kNone);
  }
  return ids;
}

// Every beginning of the texts, and what any byte makes of it, against a search of the list. (When quick, other bytes
// for each text.)
void expect_searched(const std::vector<std::string>& tokens, const std::vector<std::string>& texts) {
  std::map<std::string, std::uint32_t> listed;
  for (std::uint32_t place = 0; place < tokens.size(); ++place) {
    if (tokens[place].size() <= kLongestToken) listed[tokens[place]] = place;
  }
  const ListAndTrie made(tokens);
  const int step = test::count(1, 5);
  for (int first = 0; const std::string& text : texts) {
    const auto whole = listed.find(text);
    ASSERT_EQ(made.trie.find(text), whole == listed.end() ? Trie::kNone : whole->second) << text;
    for (int byte = first++ % step; byte < 256; byte += step) {
      const std::string longer = text + static_cast<char>(byte);
      ASSERT_EQ(walked(made.trie, longer), searched(listed, longer)) << text << ", then " << byte;
    }
  }
}

TEST(Trie, FindsWhatASearchOfTheListFinds) {
  std::mt19937 random(1);
  // Few letters: many tokens begin alike. All bytes: nodes have tables.
  for (const unsigned letters : {2u, 3u, 256u}) {
    std::vector<std::string> tokens;
    std::map<std::string, std::uint32_t> listed;
    for (int n = 0; n < 2000; ++n) {
      std::string token(random() % 12, ' ');
      for (char& byte : token) byte = static_cast<char>(random() % letters);
      listed[token] = static_cast<std::uint32_t>(tokens.size());
      tokens.push_back(token);
    }
    const ListAndTrie made(tokens);
    for (int n = 0; n < 2000; ++n) {
      std::string text = tokens[random() % tokens.size()] + tokens[random() % tokens.size()];
      if (!text.empty() && n % 2 == 0) text[random() % text.size()] = static_cast<char>(random() % letters);
      const auto whole = listed.find(text);
      ASSERT_EQ(made.trie.find(text), whole == listed.end() ? Trie::kNone : whole->second);
      ASSERT_EQ(walked(made.trie, text), searched(listed, text)) << letters << " letters, text " << n;
    }
  }
}

// Up to 8 children are looked through, more have a table, which numbers 255: 256 need none.
TEST(Trie, NodesOfAnyNumberOfChildren) {
  for (const int children : {1, 7, 8, 9, 10, 128, 254, 255, 256}) {
    for (const std::string before : {"", "ab"}) {
      for (const std::string behind : {"", "c"}) {
        std::vector<std::string> tokens;
        // From the last byte down: what is listed first does not stand first among its kind.
        for (int n = 0; n < children; ++n) tokens.push_back(before + static_cast<char>(255 - n) + behind);
        std::vector<std::string> texts{"", before, tokens.front(), tokens.back()};
        for (const std::string& token : tokens) texts.push_back(token.substr(0, before.size() + 1));
        SCOPED_TRACE(std::to_string(children) + " children behind '" + before + "', '" + behind + "' behind them");
        expect_searched(tokens, texts);
      }
    }
  }
}

// There is a table for one of 32 nodes, and here each tenth one would have one; those far from the root go without.
TEST(Trie, MoreNodesOfManyChildrenThanTables) {
  std::vector<std::string> tokens{""};
  for (std::size_t from = 0, length = 0; length < 3; ++length) {
    const std::size_t end = tokens.size();
    for (; from < end; ++from) {
      for (char letter = 'a'; letter < 'a' + 9; ++letter) tokens.push_back(tokens[from] + letter);
    }
  }
  ASSERT_EQ(ListAndTrie(tokens).trie.nodes(), 1U + 9 + 81 + 729);
  expect_searched(tokens, tokens);
  std::vector<std::string> leaves(tokens.end() - 729, tokens.end());
  expect_searched(leaves, tokens);
}

TEST(Trie, LeavesOutTokensThatAreTooLong) {
  const std::string longest(kLongestToken, 'a');
  const std::vector<std::string> tokens{longest + 'a', "a", longest + "bc", longest, "b" + longest};
  expect_searched(tokens, {"", "a", "b", longest.substr(1), longest, longest + 'a', longest + 'b', "b" + longest});
  expect_searched({longest + 'a'}, {"", "a", longest, longest + 'a'});
  EXPECT_EQ(ListAndTrie({longest + 'a', "b" + longest}).trie.nodes(), 1U);
}

TEST(Trie, WithoutTokensGoesNowhere) {
  EXPECT_TRUE(walked(ListAndTrie({}).trie, "a").empty());
  EXPECT_TRUE(walked(ListAndTrie({""}).trie, "a").empty());
  EXPECT_EQ(ListAndTrie({}).trie.find(""), Trie::kNone);
  EXPECT_EQ(ListAndTrie({""}).trie.find(""), 0U);
}

// A file of a stranger may have tokens of a thousand bytes that differ in the last one.
TEST(Trie, HasAtMostTwoNodesForAToken) {
  std::vector<std::string> tokens;
  for (int n = 0; n < 200; ++n) {
    const std::string shared(1000, static_cast<char>('a' + n % 20));
    tokens.push_back(shared + std::to_string(n));
    tokens.push_back(shared.substr(0, 900) + 'x' + std::to_string(n));
  }
  EXPECT_LE(ListAndTrie(tokens).trie.nodes(), 2 * tokens.size());
  EXPECT_EQ(ListAndTrie({std::string(1000, 'a')}).trie.nodes(), 2u);
}

}  // namespace headlight::text::trie_test
