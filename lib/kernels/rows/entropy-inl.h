// Entropies of rows that are distributions, and of the mixtures of two such rows.
#pragma once

#include "kernels/rows/kernels.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// p ln p, 0 for p = 0. Below the normal numbers ln stops at −87.3: p is nothing there.
HEADLIGHT_INLINE Vec entropy_term(Vec p) { return mul(p, log_normal(max(broadcast(0x1p-126f), p))); }

// −Σ p ln p over `rows` rows: p(some, at) are some numbers from an offset on. A caller that hands in some ten rows at a
// time keeps the float32 sums short.
template <class Numbers>
HEADLIGHT_INLINE double entropy_of_rows(const kernels::EntropyArguments& arguments, Numbers p) {
  Vec sums[kRowAccumulators];
#pragma GCC unroll 4
  for (Vec& one : sums) one = zero();
  for (std::int64_t row = 0; row < arguments.rows; ++row) {
    const std::int64_t begin = row * arguments.row_stride;
    sweep_row(arguments.columns, [&](auto some, int index, std::int64_t at) {
      Vec& sum = sums[some.count < kLanes ? 1 : index];
      sum = add(sum, entropy_term(p(some, begin + at)));
    });
  }
  return -static_cast<double>(sum_of_accumulators(sums));
}

inline void entropies(const kernels::EntropyArguments& arguments) noexcept {
  const Vec half = broadcast(0.5f);
  double* mixed = arguments.mixed;
  for (std::int64_t a = 0; a < arguments.heads; ++a) {
    const float* const p = arguments.p + a * arguments.head_stride;
    arguments.own[a] = entropy_of_rows(arguments, [&](auto some, std::int64_t at) { return some.get(p + at); });
    if (mixed == nullptr) continue;
    for (std::int64_t b = a + 1; b < arguments.heads; ++b) {
      const float* const q = arguments.p + b * arguments.head_stride;
      *mixed++ = entropy_of_rows(
          arguments, [&](auto some, std::int64_t at) { return mul(half, add(some.get(p + at), some.get(q + at))); });
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
