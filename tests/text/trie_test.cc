// The tree of a model's tokens, beside a search of the list.
#include "text/trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

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
    if (!walk.step(byte)) break;
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
