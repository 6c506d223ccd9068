// What tells relations from an encoder's output.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/layers/linear.h"
#include "headlight/tensor.h"
#include "tools/headlight/demonstration/batch.h"
#include "tools/headlight/demonstration/grammar.h"

namespace headlight::demonstration {

// Which word stands at the other end of relation r from token i: softmax(W (R_r h_i + b_r) + b) over the whole
// vocabulary.
//
// Only h_i is looked at, and the word itself is asked for. So nothing but attention can bring it there: which head
// looks where is nobody's label, and is learned all the same.
class Readout {
 public:
  Readout(std::int64_t width, std::uint64_t seed);

  // relations.NAME.weight [C, E] and .bias [C], words.weight [V, C] and .bias [V]. Opens the layers, as
  // Layer::parameters() does.
  [[nodiscard]] std::vector<Parameter> parameters();
  [[nodiscard]] Weights weights() const;
  [[nodiscard]] std::int64_t parameter_count() const;
  void set_training(bool training);
  void load(const Weights& weights);

  // For rows of the encoder's output [N, E], a score for each word of the vocabulary, [rows, V].
  [[nodiscard]] Tensor<float, 2> scores(Engine& engine, View<const float, 2> hidden, std::span<const std::int64_t> rows,
                                        Relation relation) const;

  // The cross-entropy of the answers to the relation's questions, which are a part of `of_all`, added up and divided by
  // that number; its gradients are added to the parameters' and to hidden_gradient [N, E].
  double learn(Engine& engine, const Questions& questions, std::int64_t of_all, Relation relation,
               View<const float, 2> hidden, View<float, 2> hidden_gradient);

 private:
  template <class Self, class Function>
  static void for_each_layer(Self& self, Function function);

  std::vector<Linear> relations_;
  Linear words_;
  std::vector<float> room_;  // of learn(), kept for the next call
};

}  // namespace headlight::demonstration
