// Here and not in the header, since it is the longest part of many tests: test programs are compiled for a short wait
// of whoever builds them, this library for speed.
#include "support/attention_gradients.h"

#include <vector>

namespace headlight::test {

GradientTensors<double> gradient_yardsticks(const AttentionInputs& in, const Tensor<float, 4>& out_gradient,
                                            const Tensor<float, 3>& log_sum_exp_gradient) {
  GradientTensors<double> sizes(in);
  const auto query = converted<double>(in.query);
  const auto key = converted<double>(in.key);
  const double scale = std::abs(reference::attention_scale<double>(in.options, query.shape()[3]));
  const auto& bias = sizes.bias.shape();
  const bool has_bias = sizes.bias.size() != 0;
  reference::AttentionRow<double> row;
  for (std::int64_t b = 0; b < query.shape()[0]; ++b) {
    for (std::int64_t h = 0; h < query.shape()[2]; ++h) {
      const std::int64_t of_key = h / (query.shape()[2] / key.shape()[2]);
      for (std::int64_t i = 0; i < query.shape()[1]; ++i) {
        reference::attention_row<double>(query, key, in.options, b, h, i, row);
        const auto probability_gradient = [&](std::size_t k) {
          double size = 0;
          for (std::int64_t d = 0; d < in.value.shape()[3]; ++d) {
            size += std::abs(static_cast<double>(out_gradient(b, i, h, d)) *
                             static_cast<double>(in.value(b, row.keys[k], of_key, d)));
          }
          return size * row.dropout_factors[k];
        };
        std::vector<double> probability_gradients(row.keys.size());
        double delta = 0;
        if (log_sum_exp_gradient.size() != 0) delta = std::abs(static_cast<double>(log_sum_exp_gradient(b, h, i)));
        for (std::size_t k = 0; k < row.keys.size(); ++k) {
          probability_gradients[k] = probability_gradient(k);
          delta += row.probabilities[k] * probability_gradients[k];
        }
        if (sizes.sinks.size() != 0) sizes.sinks(h) += row.sink_probability * delta;
        for (std::size_t k = 0; k < row.keys.size(); ++k) {
          const std::int64_t j = row.keys[k];
          const double score = row.probabilities[k] * (probability_gradients[k] + delta);
          for (std::int64_t d = 0; d < query.shape()[3]; ++d) {
            sizes.query(b, i, h, d) += scale * score * std::abs(key(b, j, of_key, d));
            sizes.key(b, j, of_key, d) += scale * score * std::abs(query(b, i, h, d));
          }
          for (std::int64_t d = 0; d < in.value.shape()[3]; ++d) {
            sizes.value(b, j, of_key, d) +=
                row.probabilities[k] * row.dropout_factors[k] * std::abs(static_cast<double>(out_gradient(b, i, h, d)));
          }
          if (!has_bias) continue;
          sizes.bias(bias[0] == 1 ? 0 : b, bias[1] == 1 ? 0 : h, bias[2] == 1 ? 0 : i, bias[3] == 1 ? 0 : j) += score;
        }
      }
    }
  }
  return sizes;
}

}  // namespace headlight::test
