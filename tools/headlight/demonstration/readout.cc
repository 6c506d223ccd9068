#include "tools/headlight/demonstration/readout.h"

#include <algorithm>
#include <utility>

#include "headlight/gemm.h"
#include "headlight/loss.h"

namespace headlight::demonstration {
namespace {

constexpr std::int64_t kCode = 32;  // C: what is left of h_i when one relation is asked for

// [rows, E], contiguous.
void copy_rows(View<const float, 2> hidden, std::span<const std::int64_t> rows, float* to) {
  for (const std::int64_t row : rows) to = std::copy_n(&hidden(row, 0), hidden.extent(1), to);
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
  const auto count = static_cast<std::int64_t>(rows.size());
  Tensor<float, 2> asked({count, hidden.extent(1)}), code({count, kCode}), scores({count, words_.out_features()});
  copy_rows(hidden, rows, asked.data());
  relations_[static_cast<std::size_t>(relation)].forward(engine, asked, code);
  words_.forward(engine, code, scores);
  return scores;
}

double Readout::learn(Engine& engine, const Questions& questions, std::int64_t of_all, Relation relation,
                      View<const float, 2> hidden, View<float, 2> hidden_gradient) {
  Linear& layer = relations_[static_cast<std::size_t>(relation)];
  const auto count = static_cast<std::int64_t>(questions.tokens.size());
  const std::int64_t width = hidden.extent(1), vocabulary = words_.out_features();
  room_.resize(std::max(room_.size(), static_cast<std::size_t>(count * (2 * width + 2 * kCode + vocabulary))));
  float* next = room_.data();
  const auto place = [&](std::int64_t columns) {
    return View<float, 2>(std::exchange(next, next + count * columns), {count, columns});
  };
  const View<float, 2> asked = place(width), code = place(kCode), scores = place(vocabulary),
                       code_gradient = place(kCode), asked_gradient = place(width);
  copy_rows(hidden, questions.tokens, asked.data);
  layer.forward(engine, asked, code);
  words_.forward(engine, code, scores);
  const double part = static_cast<double>(count) / static_cast<double>(of_all);
  const double loss = part * cross_entropy(engine, scores, questions.words, {.logits_gradient = scores}).loss;
  if (count != of_all) {
    // A product of no depth leaves scores ← part · scores.
    gemm(engine, View<const float, 2>(asked.data, {count, 0}), View<const float, 2>(asked.data, {0, vocabulary}),
         scores, {.beta = static_cast<float>(part)});
  }
  words_.backward(engine, code, scores, code_gradient);
  layer.backward(engine, asked, code_gradient, asked_gradient);
  for (std::int64_t n = 0; n < count; ++n) {
    float* const to = &hidden_gradient(questions.tokens[static_cast<std::size_t>(n)], 0);
    for (std::int64_t e = 0; e < width; ++e) to[e] += asked_gradient(n, e);
  }
  return loss;
}

}  // namespace headlight::demonstration
