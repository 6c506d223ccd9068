#include <cmath>
#include <vector>

#include "headlight/analysis/diversity.h"
#include "ops/check.h"

namespace headlight::analysis {

Measure output_disagreement(View<const float, 3> x) {
  ops::check_view("output_disagreement", "x", x);
  if (x.size() == 0) return Undefined::no_rows;
  // Σ_ab cos(x_a, x_b) = ‖Σ_a x_a / ‖x_a‖‖².
  const std::int64_t heads = x.extent(1);
  std::vector<double> norms(static_cast<std::size_t>(heads));
  for (std::int64_t h = 0; h < heads; ++h) {
    double squares = 0;
    for (std::int64_t n = 0; n < x.extent(0); ++n) {
      for (std::int64_t d = 0; d < x.extent(2); ++d) {
        squares += static_cast<double>(x(n, h, d)) * static_cast<double>(x(n, h, d));
      }
    }
    if (squares == 0) return Undefined::zero;
    norms[static_cast<std::size_t>(h)] = std::sqrt(squares);
  }
  double squares = 0;
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t d = 0; d < x.extent(2); ++d) {
      double sum = 0;
      for (std::int64_t h = 0; h < heads; ++h)
        sum += static_cast<double>(x(n, h, d)) / norms[static_cast<std::size_t>(h)];
      squares += sum * sum;
    }
  }
  return -squares / static_cast<double>(heads) / static_cast<double>(heads);
}

Measure position_disagreement(View<const float, 3> weights) {
  ops::check_view("position_disagreement", "weights", weights);
  if (weights.size() == 0) return Undefined::no_rows;
  // Σ_ab α_a α_b = (Σ_a α_a)².
  double squares = 0;
  for (std::int64_t i = 0; i < weights.extent(1); ++i) {
    for (std::int64_t j = 0; j < weights.extent(2); ++j) {
      double sum = 0;
      for (std::int64_t h = 0; h < weights.extent(0); ++h) sum += static_cast<double>(weights(h, i, j));
      squares += sum * sum;
    }
  }
  const auto heads = static_cast<double>(weights.extent(0));
  return -squares / heads / heads / static_cast<double>(weights.extent(1));
}

}  // namespace headlight::analysis
