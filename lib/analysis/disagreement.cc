#include <cmath>
#include <vector>

#include "headlight/analysis/diversity.h"
#include "ops/check.h"

namespace headlight::analysis {

namespace {

// With s = Σ_b x_b / n_b and n_a = ‖x_a‖ the disagreement is −‖s‖² / H², and its gradient by x_a is
// −2 (s − x_a (x_a · s) / n_a²) / (n_a H²).
void add_gradient(const View<const float, 3>& x, const std::vector<double>& norms, const PenaltyGradient<3>& gradient) {
  const std::int64_t heads = x.extent(1), width = x.extent(2);
  const auto sum_at = [&](std::int64_t n, std::int64_t d) {
    double sum = 0;
    for (std::int64_t h = 0; h < heads; ++h)
      sum += static_cast<double>(x(n, h, d)) / norms[static_cast<std::size_t>(h)];
    return sum;
  };
  std::vector<double> along(norms.size());  // x_a · s
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t d = 0; d < width; ++d) {
      const double sum = sum_at(n, d);
      for (std::int64_t h = 0; h < heads; ++h)
        along[static_cast<std::size_t>(h)] += sum * static_cast<double>(x(n, h, d));
    }
  }
  const double scale = -2 * gradient.scale / static_cast<double>(heads) / static_cast<double>(heads);
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t d = 0; d < width; ++d) {
      const double sum = sum_at(n, d);
      for (std::int64_t h = 0; h < heads; ++h) {
        const double norm = norms[static_cast<std::size_t>(h)];
        const double part = static_cast<double>(x(n, h, d)) * along[static_cast<std::size_t>(h)] / (norm * norm);
        gradient.into(n, h, d) += static_cast<float>(scale * (sum - part) / norm);
      }
    }
  }
}

}  // namespace

Measure output_disagreement(View<const float, 3> x, const PenaltyGradient<3>& gradient) {
  constexpr std::string_view kName = "output_disagreement";
  ops::check_view(kName, "x", x);
  if (gradient.into) {
    ops::check_view(kName, "gradient", gradient.into);
    ops::check_shape(kName, "gradient", gradient.into.shape, x.shape, "the shape of x");
  }
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
  if (gradient.into) add_gradient(x, norms, gradient);
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
