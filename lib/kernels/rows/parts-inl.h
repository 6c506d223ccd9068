// Rows of attention over some of the keys each, put together.
#pragma once

#include "kernels/attention/merge_kernels.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline float merge_parts(const kernels::MergePartsArguments& a) noexcept {
  float shift = -kInfinity;
  for (std::int64_t p = 0; p < a.count; ++p) shift = a.log_sum_exps[p] > shift ? a.log_sum_exps[p] : shift;
  // Where no part has a key the weights are exp(−∞) = 0 beside anything else that is finite.
  if (shift == -kInfinity) shift = 0;
  // The difference of halves, for a whole one may overflow; from −105 on its power is 0.
  const Vec half = broadcast(0.5f), half_shift = broadcast(0.5f * shift);
  sweep_row(a.count, [&](auto some, int, std::int64_t p) {
    const Vec distance = max(broadcast(-60.0f), sub(mul(some.get(a.log_sum_exps + p), half), half_shift));
    some.put(exp(add(distance, distance)), a.weights + p);
  });
  float sum = 0;
  for (std::int64_t p = 0; p < a.count; ++p) sum += a.weights[p];

  // Divided once a row, so that one part alone comes back to the bit.
  const Vec factor = broadcast(sum == 0 ? 0.0f : 1.0f / sum);
  sweep_row(a.columns, [&](auto some, int, std::int64_t at) {
    Vec mixed = zero();
    for (std::int64_t p = 0; p < a.count; ++p) {
      if (a.log_sum_exps[p] != -kInfinity) mixed = fma(broadcast(a.weights[p]), some.get(a.parts[p] + at), mixed);
    }
    some.put(mul(mixed, factor), a.out + at);
  });
  float log_of_sum = 0;
  store_partial(log(broadcast(sum)), &log_of_sum, 1);
  return sum == 0 ? -kInfinity : shift + log_of_sum;
}

}  // namespace headlight::HEADLIGHT_TARGET
