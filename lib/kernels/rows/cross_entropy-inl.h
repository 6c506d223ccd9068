// The cross-entropy of rows of logits with their labels, and its gradient.
#pragma once

#include "kernels/rows/gradient_kernels.h"
#include "kernels/rows/softmax-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline void cross_entropy(const kernels::CrossEntropyArguments& a) noexcept {
  for (std::int64_t n = 0; n < a.rows; ++n) {
    const float* logits = a.logits.row(n);
    float* gradient = a.gradient.data == nullptr ? nullptr : a.gradient.row(n);
    if (a.labels[n] == a.ignore_label) {
      a.losses[n] = 0.0f;
      for (std::int64_t j = 0; gradient != nullptr && j < a.columns; ++j) gradient[j] = 0.0f;
      continue;
    }
    const Largest largest = largest_of_row(logits, a.columns);
    const float distance = largest.number - logits[a.labels[n]];  // before the gradient takes its place
    const float sum = gradient == nullptr ? exponentials_of_row<false>(logits, nullptr, a.columns, largest)
                                          : exponentials_of_row<true>(logits, gradient, a.columns, largest);
    a.losses[n] = max_of_lanes(log(broadcast(sum))) + distance;
    if (gradient == nullptr) continue;
    // (p − 1) · scale rather than p · scale − scale: exact where p is close to 1.
    const float of_label = (gradient[a.labels[n]] / sum - 1.0f) * a.scale;
    scaled_row(gradient, a.scale / sum, gradient, a.columns);
    gradient[a.labels[n]] = of_label;
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
