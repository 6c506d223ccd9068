// Whether a model learns the demonstration language, and what the committed one knows: inside, without the command
// line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "models/scratch_folder.h"
#include "support/quick.h"
#include "tools/headlight/demonstration/default_model.h"
#include "tools/headlight/demonstration/evaluation.h"
#include "tools/headlight/demonstration/grammar.h"
#include "tools/headlight/demonstration/trainer.h"

namespace headlight::demonstration::demonstration_test {

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
  if (test::quick()) GTEST_SKIP() << "nine hundred steps: minutes under a sanitizer";
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
  options.shards = 4;
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

// A batch in shards is the same batch: what differs is how sums are rounded.
TEST(Trainer, ShardsAreTheBatch) {
  Engine engine;
  TrainingOptions in_shards = small(2);
  in_shards.shards = 8;
  Trainer at_once(small(2)), by_shards(in_shards);
  const TrainingReport one = at_once.step(engine), other = by_shards.step(engine);
  EXPECT_NEAR(other.losses.total, one.losses.total, 1e-6 * one.losses.total);
  EXPECT_NEAR(other.step.gradient_norm, one.step.gradient_norm, 1e-5 * one.step.gradient_norm);
  EXPECT_NE(values(by_shards), values(at_once));
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

// The sentence through the committed model, as people write it.
struct Understood {
  std::vector<std::string> words;
  std::vector<std::int64_t> ids;
  Tensor<float, 2> hidden;
  std::vector<Tensor<float, 3>> weights;  // [H, L, L] a layer

  [[nodiscard]] std::int64_t find(const std::string& word) const {
    return std::find(words.begin(), words.end(), word) - words.begin();
  }
  [[nodiscard]] float weight(std::size_t layer, std::int64_t head, const std::string& from,
                             const std::string& to) const {
    return weights[layer](head, find(from), find(to));
  }
  // Of the head that looks at neighbours best, what it gives least of them.
  [[nodiscard]] float faintest_neighbour() const {
    float best = 0;
    for (const Tensor<float, 3>& layer : weights) {
      for (std::int64_t head = 0; head < layer.shape()[0]; ++head) {
        float least = 1;
        for (std::int64_t word = 2; word + 1 < layer.shape()[1]; ++word) {
          least = std::min(least, layer(head, word, word - 1));
        }
        best = std::max(best, least);
      }
    }
    return best;
  }
  // The most that a head looks from one word at another.
  [[nodiscard]] float brightest(const std::string& from, const std::string& to) const {
    float most = 0;
    for (std::size_t layer = 0; layer < weights.size(); ++layer) {
      for (std::int64_t head = 0; head < weights[layer].shape()[0]; ++head) {
        most = std::max(most, weight(layer, head, from, to));
      }
    }
    return most;
  }
};

class CommittedModel : public testing::Test {
 protected:
  Understood read(const std::string& text) {
    Understood result;
    result.ids = model_.encoder.tokenizer().encode(text, 17);
    const auto length = static_cast<std::int64_t>(result.ids.size());
    for (const std::int64_t id : result.ids) result.words.push_back(model_.encoder.tokenizer().token(id));
    for (std::int64_t layer = 0; layer < model_.encoder.options().encoder.layers; ++layer) {
      result.weights.push_back(model_.encoder.probabilities(engine_, result.ids, layer));
    }
    const Tensor<float, 3> hidden =
        model_.encoder.encode(engine_, View<const std::int64_t, 2>(result.ids.data(), {1, length}));
    result.hidden = Tensor<float, 2>({length, hidden.shape()[2]});
    std::copy(hidden.begin(), hidden.end(), result.hidden.begin());
    return result;
  }
  // By how much the one word is likelier than the other as the relation's answer at `from`, as a logarithm.
  float margin(const Understood& text, Relation relation, const std::string& from, const std::string& right,
               const std::string& wrong) {
    const std::vector<std::int64_t> rows{text.find(from)};
    const Tensor<float, 2> scores = model_.readout->scores(engine_, text.hidden, rows, relation);
    return scores(0, Grammar::id(right)) - scores(0, Grammar::id(wrong));
  }
  // Two sentences, two nouns: in the first `it` is the one, in the second the other. The readout says so, and one and
  // the same head turns its light from the one to the other.
  void expect_flip(const std::string& first, const std::string& second, const std::string& it, const std::string& one,
                   const std::string& other) {
    const Understood a = read(first), b = read(second);
    EXPECT_GT(margin(a, Relation::coreference, it, one, other), 3) << first;
    EXPECT_GT(margin(b, Relation::coreference, it, other, one), 3) << second;
    int turning = 0;
    for (std::size_t layer = 0; layer < a.weights.size(); ++layer) {
      for (std::int64_t head = 0; head < a.weights[layer].shape()[0]; ++head) {
        const float least = std::min(a.weight(layer, head, it, one), b.weight(layer, head, it, other));
        const float most = std::max(a.weight(layer, head, it, other), b.weight(layer, head, it, one));
        turning += least > 0.8f && most < 0.2f ? 1 : 0;
      }
    }
    EXPECT_GE(turning, 1) << first << " / " << second;
  }

  Engine engine_;
  LoadedModel model_ = load("");
};

TEST_F(CommittedModel, LastWordSaysWhatItIs) {
  const std::string english = "The animal didn't cross the street because it was too ";
  expect_flip(english + "tired.", english + "wide.", "it", "animal", "street");
  expect_flip("机器人拿起红色的积木,因为它很轻", "机器人拿起红色的积木,因为它很有力", "它", "积木", "机器人");
  expect_flip("动物没有穿过街道因为它太累", "动物没有穿过街道因为它太宽", "它", "动物", "街道");
}

TEST_F(CommittedModel, HeadsLookAlongTheOtherRelationsToo) {
  const Understood english = read("The animal didn't cross the street because it was too tired.");
  EXPECT_GT(english.brightest("cross", "animal"), 0.8f);
  EXPECT_GT(english.brightest("cross", "street"), 0.8f);
  EXPECT_GT(english.brightest("because", "cross"), 0.8f);
  EXPECT_GT(english.brightest("because", "tired"), 0.8f);
  const Understood chinese = read("机器人拿起红色的积木,因为它很轻");
  EXPECT_GT(chinese.brightest("红色", "积木"), 0.8f);
  EXPECT_GT(chinese.brightest("拿起", "机器人"), 0.8f);
  EXPECT_GT(chinese.brightest("拿起", "积木"), 0.8f);
  for (const Understood* sentence : {&english, &chinese}) EXPECT_GT(sentence->faintest_neighbour(), 0.8f);
  const Understood chase = read("猫追老鼠");
  EXPECT_GT(chase.brightest("追", "猫"), 0.8f);
  EXPECT_GT(chase.brightest("追", "老鼠"), 0.8f);
  EXPECT_GT(margin(chase, Relation::subject, "追", "猫", "老鼠"), 3);
  EXPECT_GT(margin(chase, Relation::object, "追", "老鼠", "猫"), 3);
}

TEST_F(CommittedModel, IsRightOnCombinationsNeverSeen) {
  ASSERT_TRUE(model_.readout.has_value());
  const Model model(std::move(model_.encoder.network()), std::move(*model_.readout));
  const Evaluation evaluation = evaluate(engine_, model, sentences(20, 1000, Part::held_out));
  EXPECT_GE(evaluation.least_accuracy(), 0.99);
}

TEST_F(CommittedModel, IsInThisLanguageAndTakesAnyText) {
  for (const Sentence& sentence : sentences(8, 500, Part::training)) {
    std::vector<std::int64_t> expected{Grammar::id("[CLS]")};
    for (const std::string_view word : sentence.words) expected.push_back(Grammar::id(word));
    expected.push_back(Grammar::id("[SEP]"));
    EXPECT_EQ(model_.encoder.tokenizer().encode(text_of(sentence), 17), expected) << text_of(sentence);
  }
  EXPECT_EQ(read("").words, (std::vector<std::string>{"[CLS]", "[SEP]"}));
  EXPECT_EQ(read("The zebra 吃 it").words, (std::vector<std::string>{"[CLS]", "the", "[UNK]", "[UNK]", "it", "[SEP]"}));
}

TEST(Readout, IsFoundOnlyInAModelOfThisLanguage) {
  const test::ScratchFolder folder;
  Model(default_encoder(), 1).save(folder.path(), {});
  EXPECT_TRUE(load(folder.path()).readout.has_value());
  std::string vocabulary = folder.read("vocab.txt");
  vocabulary.replace(vocabulary.find("animal"), 6, "animol");
  folder.write("vocab.txt", vocabulary);
  EXPECT_FALSE(load(folder.path()).readout.has_value());
}

}  // namespace headlight::demonstration::demonstration_test
