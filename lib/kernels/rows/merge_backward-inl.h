// Gradients of heads weighted and gated, row by row.
#pragma once

#include "kernels/attention/merge_kernels.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// σ(z) and σ′(z) = σ(z) σ(−z). Both from e^−|z|, for 1 − σ(z) has lost its digits where σ(z) is near 1.
struct Sigmoid {
  HEADLIGHT_INLINE explicit Sigmoid(Vec z) {
    const Vec small = exp(neg(abs(z)));
    const Vec large = div(broadcast(1.0f), add(broadcast(1.0f), small));
    const Vec other = mul(small, large);
    value = select(less_equal(z, zero()), other, large);
    slope = mul(large, other);
  }
  Vec value;
  Vec slope;
};

// to = factor · gradient over one head, and Σ x · gradient, which is read before `to` is written: `to` may be x.
HEADLIGHT_INLINE float scale_head_backward(const float* x, const float* gradient, float* to, std::int64_t head_dim,
                                           Vec factor) {
  return sum_along_row(head_dim, [&](auto some, Vec& sum, std::int64_t at) {
    const Vec g = some.get(gradient + at);
    sum = fma(some.get(x + at), g, sum);
    some.put(mul(factor, g), to + at);
  });
}

inline void weigh_heads_backward(const kernels::MergeBackwardArguments& a) noexcept {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* const x = a.x.row(row);
    const float* const weight = a.by.row(row);
    const float* const gradient = a.y_gradient.row(row);
    float* const to = a.x_gradient.row(row);
    for (std::int64_t head = 0; head < a.heads; ++head) {
      const std::int64_t at = head * a.head_dim;
      const float sum = scale_head_backward(x + at, gradient, to + at, a.head_dim, broadcast(weight[head]));
      if (a.by_gradient.data != nullptr) a.by_gradient.row(row)[head] = sum;
    }
  }
}

inline void gate_heads_backward(const kernels::MergeBackwardArguments& a) noexcept {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* const x = a.x.row(row);
    const float* const gradient = a.y_gradient.row(row);
    float* const to = a.x_gradient.row(row);
    for (std::int64_t head = 0; head < a.heads; ++head) {
      const std::int64_t at = head * a.head_dim;
      const Sigmoid gate(broadcast(a.by.row(row)[head]));
      const float sum = scale_head_backward(x + at, gradient + at, to + at, a.head_dim, gate.value);
      store_partial(mul(gate.slope, broadcast(sum)), a.by_gradient.row(row) + head, 1);
    }
  }
}

inline void gate_elements_backward(const kernels::MergeBackwardArguments& a) noexcept {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* const x = a.x.row(row);
    const float* const by = a.by.row(row);
    const float* const gradient = a.y_gradient.row(row);
    float* const to = a.x_gradient.row(row);
    float* const by_to = a.by_gradient.row(row);
    sweep_row(a.heads * a.head_dim, [&](auto some, int, std::int64_t at) {
      const Sigmoid gate(some.get(by + at));
      const Vec g = some.get(gradient + at);
      some.put(mul(gate.slope, mul(some.get(x + at), g)), by_to + at);
      some.put(mul(gate.value, g), to + at);
    });
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
