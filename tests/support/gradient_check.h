// Every gradient against central differences, in float64 and by one helper.
//
//   Tensor<double, 4> key = …, key_gradient = …;
//   const auto loss = [&] { forward(query, key, value, out); return weighted_sum(out, weights); };
//   EXPECT_TRUE(gradient_agrees(key, key_gradient, loss));
//
// where key_gradient is what a backward pass makes of out_gradient = weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/tensor.h"

namespace headlight::test {

struct GradientCheck {
  // Differences err by step² · f‴ / 6 and by 2⁻⁵³ · |f| / step, some 1e-10 of numbers around 1.
  double step = 1e-5;
  // Of the largest entry of the gradient: 1e-7 for a gradient in float64. One in float32 needs its own error added.
  double tolerance = 1e-7;
  // Elements that are looked at, spread evenly over the tensor.
  std::int64_t places = 400;
};

// Σ out · weights, whose gradient by out is weights.
template <int Rank>
[[nodiscard]] double weighted_sum(const Tensor<double, Rank>& out, const Tensor<double, Rank>& weights) {
  double sum = 0;
  for (std::int64_t n = 0; n < out.size(); ++n) sum += out.data()[n] * weights.data()[n];
  return sum;
}

// gradient[n] = d loss() / d x[n] for `count` numbers in a row. loss() reads x, which is the same again afterwards. A
// number that is not finite (a score of −inf) has no difference, and its gradient is 0.
template <class Number, class Scalar, class Loss>
testing::AssertionResult gradient_agrees(Number* x, const Scalar* gradient, std::int64_t count, Loss&& loss,
                                         const GradientCheck& check = {}) {
  const std::int64_t every = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, check.places));
  std::vector<double> differences;
  double largest = 0;
  for (std::int64_t n = 0; n < count; n += every) {
    const Number before = x[n];
    if (!std::isfinite(before)) {
      differences.push_back(0);
      continue;
    }
    const auto up = static_cast<Number>(before + static_cast<Number>(check.step));
    const auto down = static_cast<Number>(before - static_cast<Number>(check.step));
    x[n] = up;
    const double above = loss();
    x[n] = down;
    const double below = loss();
    x[n] = before;
    differences.push_back((above - below) / (static_cast<double>(up) - static_cast<double>(down)));
    largest = std::max(largest, std::abs(differences.back()));
  }
  // A gradient of zeros throughout is found by differences up to rounding alone.
  const double allowed = check.tolerance * std::max(largest, 1e-3);
  for (std::size_t place = 0; place < differences.size(); ++place) {
    const std::int64_t n = static_cast<std::int64_t>(place) * every;
    const auto given = static_cast<double>(gradient[n]);
    if (std::abs(given - differences[place]) <= allowed) continue;
    return testing::AssertionFailure() << "element " << n << ": gradient " << given << ", central difference "
                                       << differences[place] << ", allowed " << allowed << " apart";
  }
  return testing::AssertionSuccess();
}

template <class Number, class Scalar, int Rank, class Loss>
testing::AssertionResult gradient_agrees(Tensor<Number, Rank>& x, const Tensor<Scalar, Rank>& gradient, Loss&& loss,
                                         const GradientCheck& check = {}) {
  if (x.shape() != gradient.shape()) return testing::AssertionFailure() << "the gradient has another shape";
  return gradient_agrees(x.data(), gradient.data(), x.size(), loss, check);
}

}  // namespace headlight::test
