// Operations on rows: softmax, normalisation, activations, embedding, pooling, dropout, cross-entropy.
#include <vector>

#include "digests/family.h"
#include "digests/rows_draws.h"
#include "headlight/activation.h"
#include "headlight/dropout.h"
#include "headlight/loss.h"
#include "headlight/normalization.h"

namespace headlight::test {
namespace rows_family {

using Rows = DigestRows;

constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh};
constexpr float kScales[] = {1.0f, 1.0f, 4.0f, 30.0f, 1e-3f};

void softmax_of(DigestCase& c) {
  c.words << " softmax";
  Rows rows(c);
  const View<float, 2> x = rows.filled(one_of(c.random, kScales));
  if (c.random.once_in(5)) {
    for (std::int64_t n = 0; n < rows.count; ++n) {
      for (std::int64_t j = 0; j < rows.width; ++j) x(n, j) = c.random.once_in(2) ? -kDigestInfinity : x(n, j);
    }
  }
  const View<float, 2> y = rows.beside_or(x);
  softmax(c.engine, x, y);
  c.digest.add(y);
}

void layer_norm_of(DigestCase& c) {
  c.words << " layer_norm";
  Rows rows(c);
  const View<float, 2> x = rows.filled(one_of(c.random, kScales));
  LayerNormOptions options;
  if (c.random.once_in(2)) options.weight = rows.vector();
  if (c.random.once_in(2)) options.bias = rows.vector();
  if (c.random.once_in(2)) options.epsilon = 1e-12f;
  if (c.random.once_in(2)) options.residual = rows.filled();
  const View<float, 2> y = rows.beside_or(x);
  layer_norm(c.engine, x, y, options);
  c.digest.add(y);
}

void activation_of(DigestCase& c) {
  const Activation activation = one_of(c.random, kActivations);
  c.words << " activation=" << static_cast<int>(activation);
  Rows rows(c);
  const View<float, 2> x = rows.filled(one_of(c.random, kScales));
  const View<float, 2> y = rows.beside_or(x);
  activate(c.engine, activation, x, y);
  c.digest.add(y);
}

void embedding_of(DigestCase& c) {
  c.words << " embed";
  Rows rows(c);
  std::vector<std::vector<std::int64_t>> ids;
  std::vector<Embedding> embeddings;
  const std::int64_t tables = c.random.integer(1, 3);
  for (std::int64_t t = 0; t < tables; ++t) {
    const std::int64_t vocabulary = c.random.integer(1, 60);
    ids.push_back(rows.numbers(0, vocabulary - 1));
    embeddings.push_back({rows.filled(vocabulary, 1.0f), {}});
  }
  for (std::size_t t = 0; t < ids.size(); ++t) embeddings[t].ids = ids[t];
  const View<float, 2> out = rows.empty();
  embed(c.engine, embeddings, out);
  c.digest.add(out);
}

void pooling_of(DigestCase& c) {
  const bool normalize = c.random.once_in(2);
  c.words << " mean_pool" << (normalize ? " l2_normalize" : "");
  Rows rows(c);
  const std::int64_t sequences = c.random.integer(1, 9);
  const std::vector<std::int64_t> offsets = draw_offsets(c.random, sequences, rows.count);
  const View<float, 2> x = rows.filled();
  const View<float, 2> out = rows.memory.rows(c.random, sequences, rows.width);
  mean_pool(c.engine, x, offsets, out, normalize);
  c.digest.add(out);
}

Dropout draw_dropout(DigestCase& c) {
  Dropout drawn;
  drawn.probability = c.random.once_in(5) ? 0.0f : 0.5f + 0.4375f * c.random.uniform();
  drawn.seed = c.random.next();
  drawn.stream = static_cast<std::uint32_t>(c.random.next());
  return drawn;
}

void dropout_of(DigestCase& c) {
  c.words << " dropout";
  Rows rows(c);
  const View<float, 2> x = rows.filled();
  const Dropout drawn = draw_dropout(c);
  View<float, 2> residual;
  if (c.random.once_in(2)) residual = rows.filled();
  const View<float, 2> y = rows.beside_or(x);
  dropout(c.engine, x, y, drawn, residual);
  c.digest.add(y);
}

void cross_entropy_of(DigestCase& c) {
  c.words << " cross_entropy";
  Rows rows(c);
  const View<float, 2> logits = rows.filled(one_of(c.random, kScales));
  std::vector<std::int64_t> labels = rows.numbers(0, rows.width - 1);
  for (std::int64_t& label : labels) label = c.random.once_in(6) ? -100 : label;
  CrossEntropyOptions options;
  if (!c.random.once_in(3)) options.logits_gradient = rows.beside_or(logits);
  const CrossEntropy result = cross_entropy(c.engine, logits, labels, options);
  c.digest.add(result.loss);
  c.digest.add(static_cast<std::uint64_t>(result.rows));
  c.digest.add(options.logits_gradient);
}

void softmax_gradient_of(DigestCase& c) {
  c.words << " softmax_backward";
  Rows rows(c);
  const View<float, 2> y = rows.filled(), y_gradient = rows.filled();
  const View<float, 2> x_gradient = rows.beside_or(c.random.once_in(2) ? y : y_gradient);
  softmax_backward(c.engine, y, y_gradient, x_gradient);
  c.digest.add(x_gradient);
}

void layer_norm_gradient_of(DigestCase& c) {
  c.words << " layer_norm_backward";
  Rows rows(c);
  const View<float, 2> x = rows.filled(one_of(c.random, kScales)), y_gradient = rows.filled();
  LayerNormOptions options;
  if (c.random.once_in(2)) options.weight = rows.vector();
  if (c.random.once_in(2)) options.bias = rows.vector();
  if (c.random.once_in(2)) options.epsilon = 1e-12f;
  LayerNormGradients gradients;
  if (c.random.once_in(2)) gradients.residual = rows.filled();
  View<float, 2> x_gradient;
  if (!c.random.once_in(5)) gradients.x = x_gradient = rows.beside_or(y_gradient);
  if (!c.random.once_in(5)) gradients.weight = rows.vector();
  if (!c.random.once_in(5)) gradients.bias = rows.vector();
  layer_norm_backward(c.engine, x, y_gradient, gradients, options);
  c.digest.add(x_gradient);
  c.digest.add(std::span<const float>(gradients.weight));
  c.digest.add(std::span<const float>(gradients.bias));
}

void activation_gradient_of(DigestCase& c) {
  const Activation activation = one_of(c.random, kActivations);
  c.words << " activation_backward=" << static_cast<int>(activation);
  Rows rows(c);
  const View<float, 2> x = rows.filled(one_of(c.random, kScales)), y_gradient = rows.filled();
  const View<float, 2> x_gradient = rows.beside_or(c.random.once_in(2) ? x : y_gradient);
  activate_backward(c.engine, activation, x, y_gradient, x_gradient);
  c.digest.add(x_gradient);
}

void embedding_gradient_of(DigestCase& c) {
  c.words << " embed_backward";
  Rows rows(c);
  std::vector<std::vector<std::int64_t>> ids;
  std::vector<EmbeddingGradient> gradients;
  const std::int64_t tables = c.random.integer(1, 3);
  for (std::int64_t t = 0; t < tables; ++t) {
    const std::int64_t vocabulary = c.random.integer(1, 60);
    ids.push_back(rows.numbers(0, vocabulary - 1));
    gradients.push_back({rows.filled(vocabulary, 1.0f), {}});
  }
  for (std::size_t t = 0; t < ids.size(); ++t) gradients[t].ids = ids[t];
  embed_backward(c.engine, rows.filled(), gradients);
  for (const EmbeddingGradient& gradient : gradients) c.digest.add(gradient.table);
}

void pooling_gradient_of(DigestCase& c) {
  const bool normalize = c.random.once_in(2);
  c.words << " mean_pool_backward" << (normalize ? " l2_normalize" : "");
  Rows rows(c);
  const std::int64_t sequences = c.random.integer(1, 9);
  const std::vector<std::int64_t> offsets = draw_offsets(c.random, sequences, rows.count);
  const View<float, 2> x = rows.filled(), out_gradient = rows.filled(sequences, 1.0f), x_gradient = rows.empty();
  mean_pool_backward(c.engine, x, offsets, out_gradient, x_gradient, normalize);
  c.digest.add(x_gradient);
}

}  // namespace rows_family

void digest_rows(DigestCase& c) {
  constexpr void (*kKinds[])(DigestCase&) = {
      rows_family::softmax_of, rows_family::layer_norm_of, rows_family::activation_of,   rows_family::embedding_of,
      rows_family::pooling_of, rows_family::dropout_of,    rows_family::cross_entropy_of};
  kKinds[c.number % 7](c);
}

void digest_row_gradients(DigestCase& c) {
  constexpr void (*kKinds[])(DigestCase&) = {rows_family::softmax_gradient_of, rows_family::layer_norm_gradient_of,
                                             rows_family::activation_gradient_of, rows_family::embedding_gradient_of,
                                             rows_family::pooling_gradient_of};
  kKinds[c.number % 5](c);
}

}  // namespace headlight::test
