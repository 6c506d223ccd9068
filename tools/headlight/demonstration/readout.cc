#include "tools/headlight/demonstration/readout.h"

#include <algorithm>
#include <utility>

#include "headlight/loss.h"

namespace headlight::demonstration {
namespace {

constexpr std::int64_t kCode = 32;  // C: what is left of h_i when one relation is asked for

Tensor<float, 2> rows_of(View<const float, 2> hidden, std::span<const std::int64_t> rows) {
  Tensor<float, 2> result({static_cast<std::int64_t>(rows.size()), hidden.extent(1)});
  float* to = result.data();
  for (const std::int64_t row : rows) to = std::copy_n(&hidden(row, 0), hidden.extent(1), to);
  return result;
}

}  // namespace

Readout::Readout(std::int64_t width, std::uint64_t seed)
    : words_(kCode, static_cast<std::int64_t>(Grammar::vocabulary().size())) {
  for (std::size_t relation = 0; relation < kRelations; ++relation) relations_.emplace_back(width, kCode);
  for_each_layer(*this, [&](Linear& layer, const std::string&) { layer.initialize(seed++); });
}

// function(layer, prefix of its parameters' names)
template <class Self, class Function>
void Readout::for_each_layer(Self& self, Function function) {
  for (std::size_t relation = 0; relation < kRelations; ++relation) {
    function(self.relations_[relation], "relations." + std::string(name(static_cast<Relation>(relation))) + ".");
  }
  function(self.words_, std::string("words."));
}

std::vector<Parameter> Readout::parameters() {
  std::vector<Parameter> list;
  for_each_layer(*this, [&](Linear& layer, const std::string& prefix) {
    for (Parameter& parameter : layer.parameters()) {
      parameter.name = prefix + parameter.name;
      list.push_back(std::move(parameter));
    }
  });
  return list;
}

Weights Readout::weights() const {
  Weights all;
  for_each_layer(*this, [&](const Linear& layer, const std::string& prefix) {
    for (const auto& [name, weight] : layer.weights()) all.emplace(prefix + name, weight);
  });
  return all;
}

std::int64_t Readout::parameter_count() const {
  std::int64_t count = 0;
  for_each_layer(*this, [&](const Linear& layer, const std::string&) { count += layer.parameter_count(); });
  return count;
}

void Readout::set_training(bool training) {
  for_each_layer(*this, [&](Linear& layer, const std::string&) {
    layer.set_training(training);
    if (!training) layer.freeze();
  });
}

void Readout::load(const Weights& weights) {
  for_each_layer(*this, [&](Linear& layer, const std::string& prefix) { layer.load(weights, {.prefix = prefix}); });
}

Tensor<float, 2> Readout::scores(Engine& engine, View<const float, 2> hidden, std::span<const std::int64_t> rows,
                                 Relation relation) const {
  const Tensor<float, 2> asked = rows_of(hidden, rows);
  Tensor<float, 2> code({asked.shape()[0], kCode}), scores({asked.shape()[0], words_.out_features()});
  relations_[static_cast<std::size_t>(relation)].forward(engine, asked, code);
  words_.forward(engine, code, scores);
  return scores;
}

double Readout::learn(Engine& engine, const Questions& questions, std::int64_t of_all, Relation relation,
                      View<const float, 2> hidden, View<float, 2> hidden_gradient) {
  Linear& layer = relations_[static_cast<std::size_t>(relation)];
  const Tensor<float, 2> asked = rows_of(hidden, questions.tokens);
  const std::int64_t count = asked.shape()[0], width = hidden.extent(1);
  Tensor<float, 2> code({count, kCode}), scores({count, words_.out_features()});
  layer.forward(engine, asked, code);
  words_.forward(engine, code, scores);
  const double part = static_cast<double>(count) / static_cast<double>(of_all);
  const double loss = part * cross_entropy(engine, scores, questions.words, {.logits_gradient = scores}).loss;
  if (count != of_all) {
    for (float& score : scores) score *= static_cast<float>(part);
  }
  Tensor<float, 2> code_gradient({count, kCode}), asked_gradient({count, width});
  words_.backward(engine, code, scores, code_gradient);
  layer.backward(engine, asked, code_gradient, asked_gradient);
  for (std::int64_t n = 0; n < count; ++n) {
    float* const to = &hidden_gradient(questions.tokens[static_cast<std::size_t>(n)], 0);
    for (std::int64_t e = 0; e < width; ++e) to[e] += asked_gradient(n, e);
  }
  return loss;
}

}  // namespace headlight::demonstration
