// Plain twin of the loss.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "headlight/tensor.h"

namespace headlight::reference {

// The mean over rows whose label is not ignore_label of log Σ_j exp(x_ij) − x_i,label; 0 where there are none. gradient
// [N, V], where given: (softmax(x)_ij − [j = label_i]) / rows that count; zeros in the others.
template <class Scalar>
Scalar cross_entropy(View<const Scalar, 2> x, std::span<const std::int64_t> labels, std::int64_t ignore_label,
                     View<Scalar, 2> gradient = {}) {
  const auto count = static_cast<Scalar>(static_cast<std::int64_t>(labels.size()) -
                                         std::count(labels.begin(), labels.end(), ignore_label));
  Scalar loss = 0;
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    const std::int64_t label = labels[static_cast<std::size_t>(n)];
    Scalar maximum = x(n, 0), total = 0;
    for (std::int64_t j = 0; j < x.extent(1); ++j) maximum = std::max(maximum, x(n, j));
    for (std::int64_t j = 0; j < x.extent(1); ++j) total += std::exp(x(n, j) - maximum);
    for (std::int64_t j = 0; gradient && j < x.extent(1); ++j) {
      const Scalar weight = std::exp(x(n, j) - maximum) / total;
      gradient(n, j) = label == ignore_label ? 0 : (weight - (j == label ? 1 : 0)) / count;
    }
    if (label != ignore_label) loss += std::log(total) + maximum - x(n, label);
  }
  return count == 0 ? 0 : loss / count;
}

}  // namespace headlight::reference
