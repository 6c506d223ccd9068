#include "tools/headlight/demonstration/model.h"

#include <algorithm>

#include "headlight/loss.h"

namespace headlight::demonstration {
namespace {

constexpr std::int64_t kCode = 32;  // C: what is left of h_i when one relation is asked for

std::int64_t vocabulary() { return static_cast<std::int64_t>(Grammar::vocabulary().size()); }

Tensor<float, 2> rows_of(View<const float, 2> hidden, std::span<const std::int64_t> rows) {
  Tensor<float, 2> result({static_cast<std::int64_t>(rows.size()), hidden.extent(1)});
  float* to = result.data();
  for (const std::int64_t row : rows) to = std::copy_n(&hidden(row, 0), hidden.extent(1), to);
  return result;
}

}  // namespace

EncoderOptions default_encoder() {
  EncoderOptions options;
  options.vocabulary = vocabulary();
  options.max_positions = static_cast<std::int64_t>(Grammar::kLongest) + 2;  // [CLS] and [SEP]
  options.width = 64;
  options.heads = 4;
  options.feed_forward_width = 128;
  options.layers = 2;
  options.dropout = 0.1f;
  return options;
}

Model::Model(const EncoderOptions& encoder, std::uint64_t seed) : network_(encoder), words_(kCode, vocabulary()) {
  network_.initialize(seed);
  for (std::size_t relation = 0; relation < kRelations; ++relation) {
    relations_.emplace_back(encoder.width, kCode).initialize(seed + 1 + relation);
  }
  words_.initialize(seed + 1 + kRelations);
}

std::vector<Parameter> Model::parameters() {
  std::vector<Parameter> list = network_.parameters();
  const auto append = [&](Linear& layer, const std::string& prefix) {
    for (Parameter& parameter : layer.parameters()) {
      parameter.name = prefix + parameter.name;
      list.push_back(std::move(parameter));
    }
  };
  for (std::size_t relation = 0; relation < kRelations; ++relation) {
    append(relations_[relation], "relations." + std::string(name(static_cast<Relation>(relation))) + ".");
  }
  append(words_, "words.");
  return list;
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = network_.parameter_count() + words_.parameter_count();
  for (const Linear& relation : relations_) count += relation.parameter_count();
  return count;
}

void Model::set_training(bool training) {
  network_.set_training(training);
  words_.set_training(training);
  for (Linear& relation : relations_) relation.set_training(training);
  if (training) return;
  network_.freeze();
  words_.freeze();
  for (Linear& relation : relations_) relation.freeze();
}

Tensor<float, 2> Model::hidden(Engine& engine, const Batch& batch) const {
  Tensor<float, 2> hidden({batch.tokens(), network_.options().width});
  network_.forward(engine, batch.input(), hidden);
  return hidden;
}

Tensor<float, 2> Model::scores(Engine& engine, View<const float, 2> hidden, std::span<const std::int64_t> rows,
                               Relation relation) const {
  const Tensor<float, 2> asked = rows_of(hidden, rows);
  Tensor<float, 2> code({asked.shape()[0], kCode}), scores({asked.shape()[0], words_.out_features()});
  relations_[static_cast<std::size_t>(relation)].forward(engine, asked, code);
  words_.forward(engine, code, scores);
  return scores;
}

Losses Model::learn(Engine& engine, const Batch& batch, const TrainingStep& step, HeadVisitor* visitor) {
  const std::int64_t width = network_.options().width;
  Tensor<float, 2> hidden({batch.tokens(), width}), hidden_gradient({batch.tokens(), width});
  network_.forward(engine, batch.input(), hidden, saved_, step);
  Losses losses;
  for (std::size_t relation = 0; relation < kRelations; ++relation) {
    const Questions& questions = batch.questions(static_cast<Relation>(relation));
    if (questions.tokens.empty()) continue;
    losses.relation[relation] = learn(engine, questions, relation, hidden, hidden_gradient);
    losses.total += losses.relation[relation];
  }
  network_.backward(engine, batch.input(), saved_, hidden_gradient, visitor);
  return losses;
}

// One relation: its loss, and what it adds to the gradient of the encoder's output.
double Model::learn(Engine& engine, const Questions& questions, std::size_t relation, View<const float, 2> hidden,
                    View<float, 2> hidden_gradient) {
  const Tensor<float, 2> asked = rows_of(hidden, questions.tokens);
  const std::int64_t count = asked.shape()[0], width = hidden.extent(1);
  Tensor<float, 2> code({count, kCode}), scores({count, words_.out_features()});
  relations_[relation].forward(engine, asked, code);
  words_.forward(engine, code, scores);
  const double loss = cross_entropy(engine, scores, questions.words, {.logits_gradient = scores}).loss;
  Tensor<float, 2> code_gradient({count, kCode}), asked_gradient({count, width});
  words_.backward(engine, code, scores, code_gradient);
  relations_[relation].backward(engine, asked, code_gradient, asked_gradient);
  for (std::int64_t n = 0; n < count; ++n) {
    float* const to = &hidden_gradient(questions.tokens[static_cast<std::size_t>(n)], 0);
    for (std::int64_t e = 0; e < width; ++e) to[e] += asked_gradient(n, e);
  }
  return loss;
}

}  // namespace headlight::demonstration
