#include "reference/attention_backward.h"

#include <cstddef>
#include <vector>

#include "reference/attention.h"

namespace headlight::reference {
namespace {

template <class Scalar>
void clear(const View<Scalar, 4>& tensor) {
  if (!tensor || tensor.size() == 0) return;
  for (std::int64_t a = 0; a < tensor.extent(0); ++a) {
    for (std::int64_t b = 0; b < tensor.extent(1); ++b) {
      for (std::int64_t c = 0; c < tensor.extent(2); ++c) {
        for (std::int64_t d = 0; d < tensor.extent(3); ++d) tensor(a, b, c, d) = 0;
      }
    }
  }
}

// One row's share of every gradient.
template <class Scalar>
struct RowBackward {
  View<const Scalar, 4> query, key, value, out_gradient;
  View<const Scalar, 3> log_sum_exp_gradient;
  const AttentionGradients<Scalar>& gradients;
  Scalar scale;

  void operator()(const AttentionRow<Scalar>& row, std::int64_t b, std::int64_t h, std::int64_t i) const {
    const std::int64_t key_head = h / (query.extent(2) / key.extent(2));
    const std::size_t count = row.keys.size();
    std::vector<Scalar> probability_gradients(count);
    Scalar delta = 0;
    for (std::size_t k = 0; k < count; ++k) {
      // out = Σ_j P_j Z_j value_j
      const Scalar factor = row.dropout_factors[k];
      Scalar dot = 0;
      for (std::int64_t d = 0; d < value.extent(3); ++d) {
        const Scalar gradient = out_gradient(b, i, h, d);
        dot += gradient * value(b, row.keys[k], key_head, d);
        if (gradients.value) gradients.value(b, row.keys[k], key_head, d) += row.probabilities[k] * factor * gradient;
      }
      probability_gradients[k] = dot * factor;
      delta += row.probabilities[k] * probability_gradients[k];
    }
    // log_sum_exp = log Σ_j exp(S_j)
    if (log_sum_exp_gradient) delta -= log_sum_exp_gradient(b, h, i);
    // The sink's value is 0, and so is the gradient of its probability.
    if (gradients.sinks) gradients.sinks(h) -= row.sink_probability * delta;
    for (std::size_t k = 0; k < count; ++k) {
      // P = softmax(S), S = cap(scale · query · key) + bias − slope · distance
      const std::int64_t j = row.keys[k];
      const Scalar score_gradient = row.probabilities[k] * (probability_gradients[k] - delta);
      const Scalar raw_gradient = scale * score_gradient * row.cap_derivatives[k];
      for (std::int64_t d = 0; d < query.extent(3); ++d) {
        if (gradients.query) gradients.query(b, i, h, d) += raw_gradient * key(b, j, key_head, d);
        if (gradients.key) gradients.key(b, j, key_head, d) += raw_gradient * query(b, i, h, d);
      }
      if (!gradients.bias) continue;
      const auto& shape = gradients.bias.shape;
      gradients.bias(shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, shape[2] == 1 ? 0 : i, shape[3] == 1 ? 0 : j) +=
          score_gradient;
    }
  }
};

}  // namespace

template <class Scalar>
void attention_backward(View<const Scalar, 4> query, View<const Scalar, 4> key, View<const Scalar, 4> value,
                        View<const Scalar, 4> out_gradient, const AttentionGradients<Scalar>& gradients,
                        const AttentionOptions& options, View<const Scalar, 3> log_sum_exp_gradient) {
  clear(gradients.query);
  clear(gradients.key);
  clear(gradients.value);
  clear(gradients.bias);
  for (std::int64_t h = 0; gradients.sinks && h < gradients.sinks.extent(0); ++h) gradients.sinks(h) = 0;
  const RowBackward<Scalar> backward{query,
                                     key,
                                     value,
                                     out_gradient,
                                     log_sum_exp_gradient,
                                     gradients,
                                     attention_scale<Scalar>(options, query.extent(3))};
  AttentionRow<Scalar> row;
  for (std::int64_t b = 0; b < query.extent(0); ++b) {
    for (std::int64_t h = 0; h < query.extent(2); ++h) {
      for (std::int64_t i = 0; i < query.extent(1); ++i) {
        attention_row(query, key, options, b, h, i, row);
        backward(row, b, h, i);
      }
    }
  }
}

template void attention_backward(View<const double, 4>, View<const double, 4>, View<const double, 4>,
                                 View<const double, 4>, const AttentionGradients<double>&, const AttentionOptions&,
                                 View<const double, 3>);
template void attention_backward(View<const float, 4>, View<const float, 4>, View<const float, 4>, View<const float, 4>,
                                 const AttentionGradients<float>&, const AttentionOptions&, View<const float, 3>);

}  // namespace headlight::reference
