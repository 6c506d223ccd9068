// What errors of the row-wise operations are measured by, where a result is what a cancellation left: the sizes of what
// was added up in it, in float64. Each stands for the twin of the same name, on the same arguments.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "headlight/activation.h"
#include "headlight/tensor.h"
#include "reference/normalization.h"

namespace headlight::test::yardsticks {

// Of a row z: what z − mean is computed from, over the deviation: (|z_e| + Σ|z| / E) / s, with s.
struct Normalized {
  Normalized(View<const double, 2> z, std::int64_t n, double epsilon) : sizes(static_cast<std::size_t>(z.extent(1))) {
    const auto width = static_cast<double>(z.extent(1));
    double mean = 0, size = 0, variance = 0;
    for (std::int64_t e = 0; e < z.extent(1); ++e) {
      mean += z(n, e) / width;
      size += std::abs(z(n, e)) / width;
    }
    for (std::int64_t e = 0; e < z.extent(1); ++e) variance += (z(n, e) - mean) * (z(n, e) - mean) / width;
    deviation = std::sqrt(variance + epsilon);
    for (std::int64_t e = 0; e < z.extent(1); ++e) {
      sizes[static_cast<std::size_t>(e)] = (std::abs(z(n, e)) + size) / deviation;
    }
  }
  std::vector<double> sizes;
  double deviation;
};

[[nodiscard]] inline double size_at(View<const double, 1> vector, std::int64_t e, double if_none) {
  return vector ? std::abs(vector(e)) : if_none;
}

// |n| |weight| + |bias|; z = x + residual.
inline void layer_norm(View<const double, 2> z, View<const double, 1> weight, View<const double, 1> bias,
                       double epsilon, View<double, 2> sizes) {
  for (std::int64_t n = 0; n < z.extent(0); ++n) {
    const Normalized normal(z, n, epsilon);
    for (std::int64_t e = 0; e < z.extent(1); ++e) {
      sizes(n, e) = normal.sizes[static_cast<std::size_t>(e)] * size_at(weight, e, 1) + size_at(bias, e, 0);
    }
  }
}

// (|g| + mean |g| + |n| mean(|g| |n|)) / s, and what is added to the sums of weight and bias, onto their own sizes.
inline void layer_norm_backward(View<const double, 2> x, View<const double, 2> y_gradient, View<const double, 1> weight,
                                double epsilon, View<double, 2> sizes, View<double, 1> weight_sizes,
                                View<double, 1> bias_sizes) {
  const auto width = static_cast<double>(x.extent(1));
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    const Normalized normal(x, n, epsilon);
    double plain = 0, weighted = 0;
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      const double g = std::abs(y_gradient(n, e)) * size_at(weight, e, 1);
      plain += g / width;
      weighted += g * normal.sizes[static_cast<std::size_t>(e)] / width;
    }
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      const double size = normal.sizes[static_cast<std::size_t>(e)];
      const double g = std::abs(y_gradient(n, e)) * size_at(weight, e, 1);
      sizes(n, e) = (g + plain + size * weighted) / normal.deviation;
      if (weight_sizes) weight_sizes(e) += std::abs(y_gradient(n, e)) * size;
      if (bias_sizes) bias_sizes(e) += std::abs(y_gradient(n, e));
    }
  }
}

// (|g| + |n| mean(|g| |n|)) / root, and what is added to the sums of weight, onto their own sizes.
inline void rms_norm_backward(View<const double, 2> x, View<const double, 2> y_gradient, View<const double, 1> weight,
                              bool one_plus_weight, double epsilon, View<double, 2> sizes,
                              View<double, 1> weight_sizes) {
  const auto width = static_cast<double>(x.extent(1));
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    double squares = 0, weighted = 0;
    for (std::int64_t e = 0; e < x.extent(1); ++e) squares += x(n, e) * x(n, e);
    const double root = std::sqrt(squares / width + epsilon);
    const auto g = [&](std::int64_t e) {
      return std::abs(y_gradient(n, e) * reference::norm_weight(weight, one_plus_weight, e));
    };
    for (std::int64_t e = 0; e < x.extent(1); ++e) weighted += g(e) * std::abs(x(n, e)) / root / width;
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      sizes(n, e) = (g(e) + std::abs(x(n, e)) / root * weighted) / root;
      if (weight_sizes) weight_sizes(e) += std::abs(y_gradient(n, e) * x(n, e)) / root;
    }
  }
}

// A pooled row that is not normalised is a sum of |x|; that of one that is, over its norm.
struct Pooled {
  Pooled(View<const double, 2> x, std::int64_t begin, std::int64_t end) : sizes(static_cast<std::size_t>(x.extent(1))) {
    double squares = 0;
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      double mean = 0;
      for (std::int64_t n = begin; n < end; ++n) {
        mean += x(n, e) / static_cast<double>(end - begin);
        sizes[static_cast<std::size_t>(e)] += std::abs(x(n, e)) / static_cast<double>(end - begin);
      }
      squares += mean * mean;
    }
    norm = std::max(std::sqrt(squares), 1e-12);
  }
  std::vector<double> sizes;
  double norm;
};

inline void mean_pool(View<const double, 2> x, std::span<const std::int64_t> offsets, View<double, 2> sizes,
                      bool l2_normalize) {
  for (std::int64_t s = 0; s < sizes.extent(0); ++s) {
    const auto at = static_cast<std::size_t>(s);
    const Pooled pooled(x, offsets[at], offsets[at + 1]);
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      sizes(s, e) = pooled.sizes[static_cast<std::size_t>(e)] / (l2_normalize ? pooled.norm : 1);
    }
  }
}

// (|g| + |o| Σ |o| |g|) / ‖mean‖ with |o| the sizes above, for each row of the sequence.
inline void mean_pool_backward(View<const double, 2> x, std::span<const std::int64_t> offsets,
                               View<const double, 2> out_gradient, View<double, 2> sizes, bool l2_normalize) {
  for (std::int64_t s = 0; s < out_gradient.extent(0); ++s) {
    const std::int64_t begin = offsets[static_cast<std::size_t>(s)], end = offsets[static_cast<std::size_t>(s) + 1];
    const Pooled pooled(x, begin, end);
    double along = 0;
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      along += pooled.sizes[static_cast<std::size_t>(e)] / pooled.norm * std::abs(out_gradient(s, e));
    }
    for (std::int64_t e = 0; e < x.extent(1); ++e) {
      double size = std::abs(out_gradient(s, e));
      if (l2_normalize) size = (size + pooled.sizes[static_cast<std::size_t>(e)] / pooled.norm * along) / pooled.norm;
      for (std::int64_t n = begin; n < end; ++n) sizes(n, e) = size / static_cast<double>(end - begin);
    }
  }
}

}  // namespace headlight::test::yardsticks

namespace headlight::test {

// What simd/math-inl.h promises of an activation's element, the widest of its ranges, and of a derivative (4e-7 of the
// gradient that came in). Rows do not matter here: far below 0 an element alone in its row is its own norm.
[[nodiscard]] inline double activation_error(Activation activation, double truth) {
  if (activation == Activation::none || activation == Activation::relu) return 0;
  return std::max(4e-6 * std::abs(truth), 1e-9);
}
[[nodiscard]] inline double activation_gradient_error(double y_gradient) { return 4e-7 * std::abs(y_gradient); }

}  // namespace headlight::test
