// Heads weighted and gated, row by row.
#pragma once

#include "kernels/attention/merge_kernels.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// 1 / (1 + e⁻ᶻ): 0 for −∞, 1 for +∞, NaN for NaN; 0 where e⁻ᶻ would overflow.
HEADLIGHT_INLINE Vec sigmoid(Vec z) {
  const Vec one = broadcast(1.0f), last = broadcast(-0x1.62e42ep+6f);  // whose power is a float
  const Vec inside = div(one, add(one, exp(neg(max(last, z)))));
  return select(less(z, last), zero(), inside);
}

inline void weigh_heads(const kernels::MergeArguments& a) noexcept {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* const x = a.x.row(row);
    const float* const weight = a.by.row(row);
    float* const y = a.y.row(row);
    sweep_row(a.head_dim, [&](auto some, int, std::int64_t at) {
      Vec sum = zero();
      for (std::int64_t head = 0; head < a.heads; ++head) {
        sum = fma(broadcast(weight[head]), some.get(x + head * a.head_dim + at), sum);
      }
      some.put(sum, y + at);
    });
  }
}

inline void gate_heads(const kernels::MergeArguments& a) noexcept {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (std::int64_t head = 0; head < a.heads; ++head) {
      const float* const x = a.x.row(row) + head * a.head_dim;
      float* const y = a.y.row(row) + head * a.head_dim;
      const Vec gate = sigmoid(broadcast(a.by.row(row)[head]));
      sweep_row(a.head_dim, [&](auto some, int, std::int64_t at) { some.put(mul(some.get(x + at), gate), y + at); });
    }
  }
}

inline void gate_elements(const kernels::MergeArguments& a) noexcept {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* const x = a.x.row(row);
    const float* const by = a.by.row(row);
    float* const y = a.y.row(row);
    sweep_row(a.heads * a.head_dim, [&](auto some, int, std::int64_t at) {
      some.put(mul(some.get(x + at), sigmoid(some.get(by + at))), y + at);
    });
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
