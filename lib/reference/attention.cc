#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace headlight::reference {
namespace {

template <class Scalar>
constexpr Scalar kNothing = -std::numeric_limits<Scalar>::infinity();

float bias_at(const View<const float, 4>& bias, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  if (!bias) return 0.0f;
  const auto& shape = bias.shape;
  return bias(shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, shape[2] == 1 ? 0 : i, shape[3] == 1 ? 0 : j);
}

// Scores of visible keys → probabilities, in place; returns the log-sum-exp. A score of −inf is a weight of 0, and a
// row of nothing else (or of no keys) is zeros. +inf and NaN make the row NaN: exp(inf − inf) and exp(NaN) are.
template <class Scalar>
Scalar softmax_row(std::vector<Scalar>& scores) {
  Scalar maximum = kNothing<Scalar>;
  for (const Scalar score : scores) maximum = std::max(maximum, score);
  Scalar total = 0;
  for (Scalar& score : scores) {
    score = score == kNothing<Scalar> ? 0 : std::exp(score - maximum);
    total += score;
  }
  if (total == 0) return kNothing<Scalar>;
  for (Scalar& score : scores) score /= total;
  return maximum + std::log(total);
}

}  // namespace

template <class Scalar>
void attention(View<const Scalar, 4> query, View<const Scalar, 4> key, View<const Scalar, 4> value, View<Scalar, 4> out,
               const AttentionOptions& options, const AttentionRows<Scalar>& rows) {
  // Where nothing is written, one axis may still count 2^30 of nothing.
  if (out.size() == 0 && rows.log_sum_exp.size() == 0 && rows.probabilities.size() == 0) return;
  const auto [batch, query_length, query_heads, head_dim] = query.shape;
  const std::int64_t key_length = key.extent(1);
  const std::int64_t group = key.extent(2) == 0 ? 1 : query_heads / key.extent(2);
  // Without head_dims every dot product is an empty sum: 0, whatever the scale.
  const Scalar scale = options.scale   ? static_cast<Scalar>(*options.scale)
                       : head_dim == 0 ? 0
                                       : 1 / std::sqrt(static_cast<Scalar>(head_dim));

  std::vector<std::int64_t> keys;  // those that the row sees
  std::vector<Scalar> weights;     // one for each of them
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < query_heads; ++h) {
      for (std::int64_t i = 0; i < query_length; ++i) {
        keys.clear();
        weights.clear();
        for (std::int64_t j = 0; j < key_length; ++j) {
          if (!visible(options, query_length, key_length, b, h, i, j)) continue;
          Scalar dot = 0;
          for (std::int64_t d = 0; d < head_dim; ++d) dot += query(b, i, h, d) * key(b, j, h / group, d);
          keys.push_back(j);
          weights.push_back(scale * dot + static_cast<Scalar>(bias_at(options.bias, b, h, i, j)));
        }
        const Scalar log_sum_exp = softmax_row(weights);

        for (std::int64_t d = 0; d < out.extent(3); ++d) {
          Scalar sum = 0;
          for (std::size_t k = 0; k < keys.size(); ++k) sum += weights[k] * value(b, keys[k], h / group, d);
          out(b, i, h, d) = sum;
        }
        if (rows.log_sum_exp) rows.log_sum_exp(b, h, i) = log_sum_exp;
        if (rows.probabilities) {
          for (std::int64_t j = 0; j < key_length; ++j) rows.probabilities(b, h, i, j) = 0;
          for (std::size_t k = 0; k < keys.size(); ++k) rows.probabilities(b, h, i, keys[k]) = weights[k];
        }
      }
    }
  }
}

template void attention(View<const double, 4>, View<const double, 4>, View<const double, 4>, View<double, 4>,
                        const AttentionOptions&, const AttentionRows<double>&);
template void attention(View<const float, 4>, View<const float, 4>, View<const float, 4>, View<float, 4>,
                        const AttentionOptions&, const AttentionRows<float>&);

}  // namespace headlight::reference
