// The demonstration language, and whether a model learns it: inside, without the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "tools/headlight/demonstration/evaluation.h"
#include "tools/headlight/demonstration/grammar.h"
#include "tools/headlight/demonstration/trainer.h"

namespace headlight::demonstration {
namespace {

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

TrainingOptions small(std::int64_t steps) {
  TrainingOptions options;
  options.steps = steps;
  options.batch = 32;
  options.encoder.width = 32;
  options.encoder.feed_forward_width = 64;
  options.encoder.dropout = 0;
  options.learning_rate = 5e-3;
  return options;
}

TEST(Trainer, LearnsTheLanguageInSeconds) {
  Engine engine;
  Trainer trainer(small(900));
  const std::vector<Sentence> unseen = sentences(99, 200, Part::held_out);
  EXPECT_LT(evaluate(engine, trainer.model(), unseen).least_accuracy(), 0.1);
  while (!trainer.done()) ASSERT_TRUE(trainer.step(engine).step.taken());
  const Model model = std::move(trainer).finish();
  const Evaluation evaluation = evaluate(engine, model, unseen);
  for (std::size_t relation = 0; relation < kRelations; ++relation) {
    EXPECT_GE(evaluation.accuracy[relation], 0.97) << name(static_cast<Relation>(relation));
    EXPECT_GT(evaluation.questions[relation], 0);
  }
}

std::vector<float> values(Trainer& trainer) {
  std::vector<float> all;
  for (const Parameter& parameter : trainer.state()) {
    all.insert(all.end(), parameter.values.begin(), parameter.values.end());
  }
  return all;
}

TEST(Trainer, GivesTheSameBitsOnAnyNumberOfThreads) {
  TrainingOptions options = small(6);
  options.encoder.dropout = 0.1f;
  std::vector<float> first;
  for (const int threads : {1, 2, 5}) {
    Engine engine(EngineOptions{.threads = threads});
    Trainer trainer(options);
    while (!trainer.done()) ASSERT_TRUE(trainer.step(engine).step.taken());
    const std::vector<float> all = values(trainer);
    if (first.empty()) first = all;
    ASSERT_EQ(first.size(), all.size());
    EXPECT_EQ(std::memcmp(first.data(), all.data(), all.size() * sizeof(float)), 0) << threads << " threads";
  }
}

TEST(Trainer, PenaltyIsPartOfTheGradient) {
  Engine engine;
  Trainer plain(small(2)), penalised(small(2));
  penalised.set_penalty([](Engine&, Model& model) {
    for (const Parameter& parameter : model.parameters()) parameter.gradient.front() += 1.0f;
    return 0.25;
  });
  const TrainingReport without = plain.step(engine), with = penalised.step(engine);
  EXPECT_EQ(without.penalty, 0);
  EXPECT_EQ(with.penalty, 0.25);
  EXPECT_EQ(without.losses.total, with.losses.total);
  EXPECT_NE(without.step.gradient_norm, with.step.gradient_norm);
}

TEST(Trainer, NamesAGradientThatIsNotFiniteAndStaysWhereItWas) {
  Engine engine;
  Trainer trainer(small(2));
  const std::vector<float> before = values(trainer);
  trainer.set_penalty([](Engine&, Model& model) {
    for (const Parameter& parameter : model.parameters()) {
      if (parameter.name == "words.bias") parameter.gradient[3] = std::numeric_limits<float>::quiet_NaN();
    }
    return 0.0;
  });
  EXPECT_EQ(trainer.step(engine).step.non_finite, "words.bias");
  EXPECT_EQ(trainer.steps_taken(), 0);
  EXPECT_EQ(values(trainer), before);
}

TEST(Evaluation, FindsTheHeadsOfRelations) {
  Engine engine;
  const Model model(default_encoder(), 1);
  const std::vector<Sentence> some = sentences(4, 20, Part::training);
  const auto heads = heads_of_relations(engine, model, some);
  for (const auto& relation : heads) {
    ASSERT_EQ(relation.size(), 8u);
    EXPECT_TRUE(std::is_sorted(relation.begin(), relation.end(),
                               [](const RelationHead& a, const RelationHead& b) { return a.weight > b.weight; }));
    EXPECT_LE(relation.front().weight, 1);
    EXPECT_GE(relation.back().weight, 0);
  }
}

}  // namespace
}  // namespace headlight::demonstration
