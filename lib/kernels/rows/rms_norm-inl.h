// Normalisation by the root of the mean square along a row: two sweeps over a row in L1. Squares cannot cancel, so
// nothing is corrected.
#pragma once

#include "kernels/rows/kernels.h"
#include "kernels/rows/sweep-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// 1 / sqrt(mean(x²) + epsilon)
HEADLIGHT_INLINE Vec inverse_root_mean_square(const float* x, std::int64_t columns, float epsilon) {
  const float squares = dot_of_rows(x, x, columns);
  return div(broadcast(1.0f), sqrt(broadcast(squares / static_cast<float>(columns) + epsilon)));
}

// What a normal is multiplied by: weight + plus, where there is a weight.
struct NormWeight {
  // −0 changes no number, not even −0.
  HEADLIGHT_INLINE NormWeight(const float* weight_, bool one_plus_weight)
      : weight(weight_), plus(broadcast(one_plus_weight ? 1.0f : -0.0f)) {}

  template <class Some>
  HEADLIGHT_INLINE Vec get(Some some, std::int64_t at) const {
    return add(some.get(weight + at), plus);
  }

  const float* weight;
  Vec plus;
};

// A row's factor is known only a chain of folds, a root and a division after its squares: meanwhile the row before it
// is written.
template <bool kAdded>
HEADLIGHT_INLINE void rms_norm_rows(const kernels::RmsNormArguments& a) {
  if (a.rows == 0) return;
  const NormWeight weight(a.weight, a.one_plus_weight);
  Vec inverse = inverse_root_mean_square(a.x.row(0), a.columns, a.epsilon);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* x = a.x.row(row);
    const float* added = kAdded ? a.added.row(row) : nullptr;
    float* y = a.y.row(row);
    const Vec of_next = row + 1 < a.rows ? inverse_root_mean_square(a.x.row(row + 1), a.columns, a.epsilon) : inverse;
    sweep_row(a.columns, [&](auto some, int, std::int64_t at) {
      Vec n = mul(some.get(x + at), inverse);
      if constexpr (kAdded) {
        const Vec other = some.get(added + at);
        n = weight.weight != nullptr ? fma(n, weight.get(some, at), other) : add(n, other);
      } else {
        if (weight.weight != nullptr) n = mul(n, weight.get(some, at));
      }
      some.put(n, y + at);
    });
    inverse = of_next;
  }
}

inline void rms_norm(const kernels::RmsNormArguments& arguments) noexcept {
  arguments.added.data != nullptr ? rms_norm_rows<true>(arguments) : rms_norm_rows<false>(arguments);
}

}  // namespace headlight::HEADLIGHT_TARGET
