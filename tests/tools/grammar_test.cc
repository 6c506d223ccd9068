// The demonstration language: its words, its sentences, and what their words ask each other.
#include "tools/headlight/demonstration/grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tools/headlight/demonstration/evaluation.h"

namespace headlight::demonstration::grammar_test {

std::string joined(const Sentence& sentence) {
  std::string text;
  for (const std::string_view word : sentence.words) text += std::string(text.empty() ? "" : " ") + std::string(word);
  return text;
}

std::string_view at(const Sentence& sentence, std::size_t word) { return sentence.words.at(word); }

// The word at the other end of the only such link of a sentence; "" where there is none.
std::string_view end_of(const Sentence& sentence, Relation relation) {
  for (const Link& link : sentence.links) {
    if (link.relation == relation) return at(sentence, link.to);
  }
  return "";
}

std::string_view start_of(const Sentence& sentence, Relation relation) {
  for (const Link& link : sentence.links) {
    if (link.relation == relation) return at(sentence, link.from);
  }
  return "";
}

TEST(Grammar, VocabularyHoldsEveryWordOnce) {
  const std::vector<std::string>& words = Grammar::vocabulary();
  EXPECT_EQ(std::set<std::string>(words.begin(), words.end()).size(), words.size());
  for (std::size_t id = 0; id < words.size(); ++id) EXPECT_EQ(Grammar::id(words[id]), static_cast<std::int64_t>(id));
  EXPECT_EQ(Grammar::id("submarine"), Grammar::id("[UNK]"));
  EXPECT_EQ(Grammar::id(""), Grammar::id("[UNK]"));
}

TEST(Grammar, SentencesAreTheSameEveryTime) {
  EXPECT_EQ(joined(Grammar::sentence(1, 0, Part::training)), joined(Grammar::sentence(1, 0, Part::training)));
  std::set<std::string> different;
  for (std::uint64_t number = 0; number < 1000; ++number) {
    different.insert(joined(Grammar::sentence(1, number, Part::training)));
    different.insert(joined(Grammar::sentence(2, number, Part::training)));
  }
  EXPECT_GT(different.size(), 1900u);
}

TEST(Grammar, LinksJoinWordsOfTheirKind) {
  std::map<Relation, int> seen;
  int chinese = 0, to_subject = 0, to_object = 0;
  for (const Sentence& sentence : sentences(7, 4000, Part::training)) {
    ASSERT_LE(sentence.words.size(), Grammar::kLongest) << joined(sentence);
    chinese += sentence.language == Language::chinese ? 1 : 0;
    std::set<std::pair<Relation, std::size_t>> sources;
    for (const std::string_view word : sentence.words) ASSERT_NE(Grammar::id(word), Grammar::id("[UNK]")) << word;
    for (const Link& link : sentence.links) {
      ++seen[link.relation];
      ASSERT_LT(std::max(link.from, link.to), sentence.words.size()) << joined(sentence);
      ASSERT_TRUE(sources.insert({link.relation, link.from}).second) << joined(sentence);
      ASSERT_TRUE(link.relation != Relation::neighbour || link.from == link.to + 1);
    }
    const std::string_view verb = start_of(sentence, Relation::subject);
    EXPECT_EQ(verb, start_of(sentence, Relation::object));
    EXPECT_NE(end_of(sentence, Relation::subject), end_of(sentence, Relation::object));
    const std::string_view noun = end_of(sentence, Relation::coreference);
    if (noun.empty()) continue;
    EXPECT_TRUE(start_of(sentence, Relation::coreference) == "it" || start_of(sentence, Relation::coreference) == "它");
    EXPECT_TRUE(start_of(sentence, Relation::cause) == "because" || start_of(sentence, Relation::cause) == "因为");
    EXPECT_EQ(end_of(sentence, Relation::effect), verb);
    to_subject += noun == end_of(sentence, Relation::subject) ? 1 : 0;
    to_object += noun == end_of(sentence, Relation::object) ? 1 : 0;
  }
  EXPECT_EQ(seen.size(), kRelations);
  EXPECT_NEAR(chinese, 2000, 200);
  EXPECT_NEAR(to_subject, to_object, 300);
}

// The last adjective alone says what `it` is.
TEST(Grammar, TheReasonDecidesWhatItIs) {
  std::map<std::string, std::set<Relation>> meant;
  for (const Sentence& sentence : sentences(3, 4000, Part::training)) {
    const std::string_view noun = end_of(sentence, Relation::coreference);
    if (noun.empty()) continue;
    const bool subject = noun == end_of(sentence, Relation::subject);
    meant[std::string(end_of(sentence, Relation::cause))].insert(subject ? Relation::subject : Relation::object);
  }
  for (const auto& [reason, ends] : meant) EXPECT_EQ(ends.size(), 1u) << reason;
  for (const char* reason : {"tired", "strong", "累", "有力"}) {
    EXPECT_EQ(meant.at(reason), std::set<Relation>{Relation::subject});
  }
  for (const char* reason : {"wide", "light", "宽", "轻"})
    EXPECT_EQ(meant.at(reason), std::set<Relation>{Relation::object});
}

TEST(Grammar, ShuffledSentencesHaveTheSameWordsAndOnlyNeighbours) {
  int moved = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    Sentence plain = Grammar::sentence(4, number, Part::training), shuffled = Grammar::shuffled(4, number);
    EXPECT_EQ(joined(shuffled), joined(Grammar::shuffled(4, number)));
    moved += joined(plain) != joined(shuffled) ? 1 : 0;
    ASSERT_EQ(shuffled.links.size(), shuffled.words.size() - 1);
    for (std::size_t word = 1; word < shuffled.words.size(); ++word) {
      EXPECT_EQ(shuffled.links[word - 1], (Link{Relation::neighbour, word, word - 1}));
    }
    std::sort(plain.words.begin(), plain.words.end());
    std::sort(shuffled.words.begin(), shuffled.words.end());
    EXPECT_EQ(plain.words, shuffled.words);
  }
  EXPECT_GT(moved, 150);
}

std::string combination_of(const Sentence& sentence) {
  std::string key;
  for (const Relation relation : {Relation::subject, Relation::object, Relation::cause}) {
    key += std::string(end_of(sentence, relation)) + "|";
  }
  // One verb in both of its forms: "crossed" behind no didn't.
  return key + std::string(start_of(sentence, Relation::subject).substr(0, 4));
}

TEST(Grammar, HeldOutCombinationsAreNeverTrainedOnButTheirWordsAre) {
  std::set<std::string> trained, words;
  for (const Sentence& sentence : sentences(1, 20000, Part::training)) {
    trained.insert(combination_of(sentence));
    for (const std::string_view word : sentence.words) words.emplace(word);
  }
  EXPECT_EQ(words.size() + 5, Grammar::vocabulary().size());
  for (const Sentence& sentence : sentences(2, 2000, Part::held_out)) {
    EXPECT_FALSE(trained.contains(combination_of(sentence))) << joined(sentence);
  }
  for (const char* founding : {"animal|street|tired|cros", "animal|street|wide|cros", "cat|mouse||chas"}) {
    EXPECT_FALSE(trained.contains(founding)) << founding;
  }
}

// What words ask is what sentences of the grammar answer.
TEST(Grammar, QuestionsAreThoseThatSentencesAnswer) {
  for (const Sentence& sentence : sentences(6, 500, Part::training)) {
    std::set<std::pair<Relation, std::size_t>> asked, answered;
    for (const Question& question : Grammar::questions(sentence.words))
      asked.insert({question.relation, question.from});
    for (const Link& link : sentence.links) {
      if (link.relation != Relation::neighbour) answered.insert({link.relation, link.from});
    }
    EXPECT_EQ(asked, answered) << joined(sentence);
  }
  const std::vector<std::string_view> odd{"red", "because", "it"};
  EXPECT_EQ(Grammar::questions(odd).size(), 3u);
  EXPECT_TRUE(Grammar::questions({}).empty());
}

TEST(Grammar, TextsReadAsPeopleWrite) {
  for (const Sentence& sentence : sentences(5, 200, Part::training)) {
    const std::string text = text_of(sentence);
    if (sentence.language == Language::chinese) {
      EXPECT_EQ(text.find(' '), std::string::npos) << text;
    } else {
      EXPECT_TRUE(text.starts_with("The ")) << text;
      EXPECT_EQ(text.find(" ,"), std::string::npos) << text;
    }
  }
}

}  // namespace headlight::demonstration::grammar_test
