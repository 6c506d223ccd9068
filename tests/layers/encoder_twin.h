// The twin of a whole encoder, and tokens to feed both.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "headlight/layers/encoder.h"
#include "layers/twins.h"
#include "reference/embedding.h"
#include "support/random.h"

namespace headlight::test {

// Sequences of those lengths, of random tokens of two types.
struct Tokens {
  Tokens(Random& random, std::int64_t vocabulary, const std::vector<std::int64_t>& lengths) {
    for (const std::int64_t length : lengths) {
      for (std::int64_t i = 0; i < length; ++i) {
        ids.push_back(random.integer(0, vocabulary - 1));
        positions.push_back(i);
        token_types.push_back(random.integer(0, 1));
      }
      offsets.push_back(offsets.back() + length);
    }
  }
  // Sequence s alone.
  [[nodiscard]] Tokens only(std::size_t s) const {
    const auto part = [&](const std::vector<std::int64_t>& all) {
      return std::vector<std::int64_t>(all.begin() + offsets[s], all.begin() + offsets[s + 1]);
    };
    Tokens one;
    one.ids = part(ids);
    one.positions = part(positions);
    one.token_types = part(token_types);
    one.offsets.push_back(offsets[s + 1] - offsets[s]);
    return one;
  }
  [[nodiscard]] EncoderInput input() const { return {ids, positions, token_types, offsets}; }
  [[nodiscard]] std::int64_t count() const { return offsets.back(); }

  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> token_types;
  std::vector<std::int64_t> offsets = {0};

 private:
  Tokens() = default;
};

// The hidden states [1, N, E] of sequences, one behind another; with the dropout of a step of training, or none.
template <class Scalar>
Tensor<Scalar, 3> encoder_twin(TwinWeights<Scalar>& weights, const EncoderOptions& made, const Tokens& tokens,
                               const TrainingStep& step, float dropout) {
  const auto parts = static_cast<std::uint32_t>(made.layers + 1);
  const auto part = [&](std::int64_t number) {
    return TrainingStep{step.seed, step.step, step.layer * parts + static_cast<std::uint32_t>(number),
                        step.layers * parts};
  };
  Tensor<Scalar, 3> x({1, tokens.count(), made.width});
  const std::array<reference::Embedding<Scalar>, 3> tables = {
      reference::Embedding<Scalar>{weights.matrix("word_embeddings.weight"), tokens.ids},
      reference::Embedding<Scalar>{weights.matrix("position_embeddings.weight"), tokens.positions},
      reference::Embedding<Scalar>{weights.matrix("token_type_embeddings.weight"), tokens.token_types}};
  const View<Scalar, 2> rows = reference::rows_of(x.view());
  reference::embed<Scalar>(tables, rows);
  const reference::LayerNorm<Scalar> norm = weights.layer_norm("norm.", made.layer_norm_epsilon);
  if (made.norm == Norm::post) {
    reference::layer_norm<Scalar>(rows, {}, norm.weight, norm.bias, norm.epsilon, rows);
  }
  reference::dropout<Scalar>(rows, rows, part(made.layers).dropout(dropout, 0));
  std::vector<reference::EncoderLayer<Scalar>> layers;
  for (std::int64_t layer = 0; layer < made.layers; ++layer) {
    layers.push_back(weights.encoder_layer("layers." + std::to_string(layer) + ".",
                                           {.heads = made.heads,
                                            .norm = made.norm,
                                            .activation = made.activation,
                                            .layer_norm_epsilon = made.layer_norm_epsilon}));
    layers.back().dropouts = dropouts_of(part(layer), dropout);
  }
  reference::encoder<Scalar>(layers, made.norm == Norm::pre ? &norm : nullptr, x, {.query_offsets = tokens.offsets});
  return x;
}

// Of an encoder at work.
template <class Scalar>
Tensor<Scalar, 3> encoder_twin(const Encoder& encoder, const Tokens& tokens) {
  TwinWeights<Scalar> weights(encoder.weights());
  return encoder_twin(weights, encoder.options(), tokens, {}, 0);
}

}  // namespace headlight::test
