// The tree of a model's tokens, beside a search of the list.
#include "text/trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::text::trie_test {

Trie trie_of(const std::vector<std::string>& tokens) {
  Trie trie;
  for (std::size_t n = 0; n < tokens.size(); ++n) trie.add(tokens[n], static_cast<std::uint32_t>(n));
  trie.build();
  return trie;
}

// Of each beginning of a text the token that it is, as far as any token goes on.
std::vector<std::uint32_t> walked(const Trie& trie, std::string_view text) {
  std::vector<std::uint32_t> ids;
  Trie::Walk walk(trie);
  for (const char byte : text) {
    if (!walk.step(byte)) break;
    ids.push_back(walk.id());
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
      if (!token.empty()) listed[token] = static_cast<std::uint32_t>(tokens.size());
      tokens.push_back(token);
    }
    const Trie trie = trie_of(tokens);
    for (int n = 0; n < 2000; ++n) {
      std::string text = tokens[random() % tokens.size()] + tokens[random() % tokens.size()];
      if (!text.empty() && n % 2 == 0) text[random() % text.size()] = static_cast<char>(random() % letters);
      ASSERT_EQ(walked(trie, text), searched(listed, text)) << letters << " letters, text " << n;
    }
  }
}

TEST(Trie, WithoutTokensGoesNowhere) {
  const Trie trie = trie_of({});
  EXPECT_TRUE(walked(trie, "a").empty());
  EXPECT_TRUE(walked(trie_of({""}), "a").empty());
}

// A file of a stranger may have tokens of a thousand bytes that differ in the last one.
TEST(Trie, HasAtMostTwoNodesForAToken) {
  std::vector<std::string> tokens;
  for (int n = 0; n < 200; ++n) {
    const std::string shared(1000, static_cast<char>('a' + n % 20));
    tokens.push_back(shared + std::to_string(n));
    tokens.push_back(shared.substr(0, 900) + 'x' + std::to_string(n));
  }
  EXPECT_LE(trie_of(tokens).nodes(), 2 * tokens.size());
  EXPECT_EQ(trie_of({std::string(1000, 'a')}).nodes(), 2u);
}

}  // namespace headlight::text::trie_test
