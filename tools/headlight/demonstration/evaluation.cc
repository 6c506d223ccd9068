#include "tools/headlight/demonstration/evaluation.h"

#include <algorithm>

#include "headlight/loss.h"

namespace headlight::demonstration {
namespace {

// Softmax weights of every layer for one sentence.
class AttentionWeights {
 public:
  AttentionWeights(Engine& engine, const Model& model, const Sentence& sentence) {
    const Batch batch({&sentence, 1});
    const EncoderOptions& options = model.network().options();
    const std::int64_t tokens = batch.tokens();
    std::vector<LayerProbabilities> wanted;
    for (std::int64_t layer = 0; layer < options.layers; ++layer) {
      Tensor<float, 3>& weights = layers_.emplace_back(Tensor<float, 3>({options.heads, tokens, tokens}));
      wanted.push_back({.layer = layer});
      wanted.back().probabilities.per_head = View<float, 4>(weights.data(), {1, options.heads, tokens, tokens});
    }
    Tensor<float, 2> hidden({tokens, options.width});
    model.network().forward(engine, batch.input(), hidden, wanted);
  }

  [[nodiscard]] double along(const RelationHead& head, const Link& link) const {
    const auto from = static_cast<std::int64_t>(link.from) + 1, to = static_cast<std::int64_t>(link.to) + 1;
    return static_cast<double>(layers_[static_cast<std::size_t>(head.layer)](head.head, from, to));
  }

 private:
  std::vector<Tensor<float, 3>> layers_;
};

}  // namespace

std::vector<Sentence> sentences(std::uint64_t seed, std::size_t count, Part part) {
  std::vector<Sentence> list;
  for (std::size_t number = 0; number < count; ++number) list.push_back(Grammar::sentence(seed, number, part));
  return list;
}

double Evaluation::least_accuracy() const noexcept { return *std::min_element(accuracy.begin(), accuracy.end()); }

Evaluation evaluate(Engine& engine, const Model& model, std::span<const Sentence> sentences) {
  Evaluation evaluation;
  if (sentences.empty()) return evaluation;
  const Batch batch(sentences);
  const Tensor<float, 2> hidden = model.hidden(engine, batch);
  for (std::size_t relation = 0; relation < kRelations; ++relation) {
    const Questions& questions = batch.questions(static_cast<Relation>(relation));
    evaluation.questions[relation] = static_cast<std::int64_t>(questions.tokens.size());
    if (questions.tokens.empty()) continue;
    const Tensor<float, 2> scores =
        model.readout().scores(engine, hidden, questions.tokens, static_cast<Relation>(relation));
    const std::int64_t words = scores.shape()[1];
    double right = 0;
    for (std::size_t n = 0; n < questions.words.size(); ++n) {
      const float* const row = &scores(static_cast<std::int64_t>(n), 0);
      right += std::max_element(row, row + words) - row == questions.words[n] ? 1 : 0;
    }
    evaluation.accuracy[relation] = right / static_cast<double>(questions.words.size());
    evaluation.loss[relation] = cross_entropy(engine, scores, questions.words).loss;
  }
  return evaluation;
}

std::array<std::vector<RelationHead>, kRelations> heads_of_relations(Engine& engine, const Model& model,
                                                                     std::span<const Sentence> sentences) {
  const EncoderOptions& options = model.network().options();
  std::vector<RelationHead> heads;
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    for (std::int64_t head = 0; head < options.heads; ++head) heads.push_back({layer, head, 0});
  }
  std::array<std::vector<RelationHead>, kRelations> relations;
  relations.fill(heads);
  std::array<double, kRelations> links{};
  for (const Sentence& sentence : sentences) {
    const AttentionWeights weights(engine, model, sentence);
    for (const Link& link : sentence.links) {
      const auto relation = static_cast<std::size_t>(link.relation);
      ++links[relation];
      for (RelationHead& head : relations[relation]) head.weight += weights.along(head, link);
    }
  }
  for (std::size_t relation = 0; relation < kRelations; ++relation) {
    for (RelationHead& head : relations[relation]) head.weight /= std::max(links[relation], 1.0);
    std::stable_sort(relations[relation].begin(), relations[relation].end(),
                     [](const RelationHead& a, const RelationHead& b) { return a.weight > b.weight; });
  }
  return relations;
}

}  // namespace headlight::demonstration
