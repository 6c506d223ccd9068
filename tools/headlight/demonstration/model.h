// The demonstration model: a small encoder over the words of the grammar, and what tells relations from its output.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/layers/encoder.h"
#include "headlight/tensor.h"
#include "tools/headlight/demonstration/batch.h"
#include "tools/headlight/demonstration/grammar.h"

namespace headlight::demonstration {

// The encoder that `headlight train` makes: 2 layers of 4 heads, width 64, for the grammar's vocabulary and lengths.
[[nodiscard]] EncoderOptions default_encoder();

struct Losses {
  double total = 0;
  std::array<double, kRelations> relation{};  // mean cross-entropy
};

// h = Encoder(words). Which word stands at the other end of relation r from token i: softmax(W (R_r h_i + b_r) + b)
// over the whole vocabulary.
//
// Only h_i is looked at, and the word itself is asked for. So nothing but attention can bring it there: which head
// looks where is nobody's label, and is learned all the same.
class Model {
 public:
  // Any encoder with the grammar's vocabulary and at least its length; see default_encoder().
  Model(const EncoderOptions& encoder, std::uint64_t seed);

  [[nodiscard]] const headlight::Encoder& network() const noexcept { return network_; }
  [[nodiscard]] headlight::Encoder& network() noexcept { return network_; }

  // Those of the encoder, relations.NAME.weight [C, E] and .bias [C], words.weight [V, C] and .bias [V]. Opens the
  // layers, as Layer::parameters() does.
  [[nodiscard]] std::vector<Parameter> parameters();
  [[nodiscard]] std::int64_t parameter_count() const;
  void set_training(bool training);

  // The encoder's output [N, E].
  [[nodiscard]] Tensor<float, 2> hidden(Engine& engine, const Batch& batch) const;
  // What stands at the other end of the relation from these rows of `hidden`: a score for each word of the vocabulary,
  // [rows, V].
  [[nodiscard]] Tensor<float, 2> scores(Engine& engine, View<const float, 2> hidden, std::span<const std::int64_t> rows,
                                        Relation relation) const;

  // Forward and backward: adds the gradients of Σ_r mean cross-entropy of relation r to the parameters'.
  // `visitor`, where given, looks at the heads on the way back.
  Losses learn(Engine& engine, const Batch& batch, const TrainingStep& step, HeadVisitor* visitor = nullptr);

 private:
  double learn(Engine& engine, const Questions& questions, std::size_t relation, View<const float, 2> hidden,
               View<float, 2> hidden_gradient);

  headlight::Encoder network_;
  std::vector<Linear> relations_;
  Linear words_;
  SavedState saved_;
};

}  // namespace headlight::demonstration
