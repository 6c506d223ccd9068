// Rows of attention over some of the keys each, put together.
#pragma once

#include "kernels/merge_kernels.h"
#include "kernels/row_sweep-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline float merge_parts(const kernels::MergePartsArguments& a) noexcept {
  float shift = -kInfinity;
  for (std::int64_t p = 0; p < a.count; ++p) shift = a.log_sum_exps[p] > shift ? a.log_sum_exps[p] : shift;
  // Where no part has a key the weights are exp(−∞) = 0 beside anything else that is finite.
  if (shift == -kInfinity) shift = 0;
  const auto weights_of = [&](Vec sums) { return exp(sub(sums, broadcast(shift))); };
  sweep_row(
      a.count, [&](int, std::int64_t p) { store(weights_of(load(a.log_sum_exps + p)), a.weights + p); },
      [&](std::int64_t p, int count) {
        store_partial(weights_of(load_partial(a.log_sum_exps + p, count)), a.weights + p, count);
      });
  float sum = 0;
  for (std::int64_t p = 0; p < a.count; ++p) sum += a.weights[p];

  // Divided once a row, so that one part alone comes back to the bit.
  const Vec factor = broadcast(sum == 0 ? 0.0f : 1.0f / sum);
  const auto merged = [&](auto load_part) __attribute__((always_inline)) {
    Vec mixed = zero();
    for (std::int64_t p = 0; p < a.count; ++p) {
      if (a.log_sum_exps[p] != -kInfinity) mixed = fma(broadcast(a.weights[p]), load_part(a.parts[p]), mixed);
    }
    return mul(mixed, factor);
  };
  sweep_row(
      a.columns,
      [&](int, std::int64_t at) { store(merged([&](const float* part) { return load(part + at); }), a.out + at); },
      [&](std::int64_t at, int count) {
        store_partial(merged([&](const float* part) { return load_partial(part + at, count); }), a.out + at, count);
      });
  float log_of_sum = 0;
  store_partial(log(broadcast(sum)), &log_of_sum, 1);
  return sum == 0 ? -kInfinity : shift + log_of_sum;
}

}  // namespace headlight::HEADLIGHT_TARGET
