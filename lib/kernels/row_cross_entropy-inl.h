// The cross-entropy of rows of logits with their labels, and its gradient.
#pragma once

#include "kernels/row_gradient_kernels.h"
#include "kernels/row_softmax-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Σ exp(x_j − largest)
HEADLIGHT_INLINE float sum_of_exponentials(const float* x, std::int64_t columns, float largest) {
  const Vec origin = broadcast(largest);
  Vec sums[kRowAccumulators];
#pragma GCC unroll 4
  for (Vec& one : sums) one = zero();
  sweep_row(
      columns,
      [&](int index, std::int64_t at) {
        const Vec weight = exp2_nonpositive(mul(sub(load(x + at), origin), broadcast(kLog2E)));
        sums[index] = add(sums[index], weight);
      },
      [&](std::int64_t at, int count) {
        const Vec weight = exp2_nonpositive(mul(sub(load_partial(x + at, count), origin), broadcast(kLog2E)));
        sums[0] = add(sums[0], select(mask_first(count), weight, zero()));
      });
  return sum_of_accumulators(sums);
}

inline void cross_entropy(const kernels::CrossEntropyArguments& a) noexcept {
  for (std::int64_t n = 0; n < a.rows; ++n) {
    const float* logits = a.logits + n * a.logits_stride;
    float* gradient = a.gradient == nullptr ? nullptr : a.gradient + n * a.gradient_stride;
    if (a.labels[n] == a.ignore_label) {
      a.losses[n] = 0.0f;
      for (std::int64_t j = 0; gradient != nullptr && j < a.columns; ++j) gradient[j] = 0.0f;
      continue;
    }
    const float largest = largest_of_row(logits, a.columns);
    const float distance = largest - logits[a.labels[n]];  // before the gradient takes its place
    const float sum = gradient == nullptr ? sum_of_exponentials(logits, a.columns, largest)
                                          : exponentials_of_row(logits, gradient, a.columns, largest);
    a.losses[n] = max_of_lanes(log(broadcast(sum))) + distance;
    if (gradient == nullptr) continue;
    // (p − 1) · scale rather than p · scale − scale: exact where p is close to 1.
    const float of_label = (gradient[a.labels[n]] / sum - 1.0f) * a.scale;
    scale_row(gradient, a.columns, a.scale / sum);
    gradient[a.labels[n]] = of_label;
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
