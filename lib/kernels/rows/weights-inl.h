// What rows of attention weights say: their sums, how far they reach, their largest weight.
#pragma once

#include "kernels/rows/kernels.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/integers.h"

namespace headlight::HEADLIGHT_TARGET {

// Rows are short, a few vectors each, and the processor works on several at a time: one chain for each quantity.
inline void sum_weights(const float* p, std::int64_t columns, std::int64_t token, kernels::WeightRow& found) {
  const Vec itself = broadcast(static_cast<float>(token));
  Vec least = zero(), largest = zero();
  found.sum = found.distance = 0;
  for (std::int64_t first = 0; first < columns; first += kTermsOfLane * kLanes) {
    const std::int64_t end = smaller(columns, first + kTermsOfLane * kLanes);
    Vec sum = zero(), distance = zero();
    const auto take = [&](Vec weight, std::int64_t at) {
      const Vec place = add(lane_index(), broadcast(static_cast<float>(at)));
      sum = add(sum, weight);
      distance = fma(weight, abs(sub(place, itself)), distance);
      least = min(weight, least);
      largest = max(weight, largest);
    };
    std::int64_t at = first;
    for (; at + kLanes <= end; at += kLanes) take(load(p + at), at);
    // The zeros behind a row add nothing, for least and largest begin with one.
    if (at < end) take(load_partial(p + at, static_cast<int>(end - at)), at);
    found.sum += static_cast<double>(sum_of_lanes(sum));
    found.distance += static_cast<double>(sum_of_lanes(distance));
  }
  found.least = -max_of_lanes(neg(least));
  found.largest = max_of_lanes(largest);
}

// Where one place alone is counted, the sum of places is that.
inline std::int64_t only_peak(const float* p, std::int64_t columns, float largest) {
  if (!(largest > 0)) return -1;
  const Vec as_large = broadcast(largest * (1 - 0x1p-20f)), one = broadcast(1.0f);
  Vec count = zero(), places = zero();
  const auto take = [&](Vec weight, std::int64_t at) {
    const Mask is_large = less_equal(as_large, weight);
    count = add(count, select(is_large, one, zero()));
    places = add(places, select(is_large, add(lane_index(), broadcast(static_cast<float>(at))), zero()));
  };
  std::int64_t at = 0;
  for (; at + kLanes <= columns; at += kLanes) take(load(p + at), at);
  if (at < columns) take(load_partial(p + at, static_cast<int>(columns - at)), at);
  return sum_of_lanes(count) == 1.0f ? static_cast<std::int64_t>(sum_of_lanes(places)) : -1;
}

inline void weight_rows(const kernels::WeightRowsArguments& arguments, kernels::WeightRow* found) noexcept {
  for (std::int64_t row = 0; row < arguments.rows; ++row) {
    const float* const p = arguments.p + row * arguments.row_stride;
    const std::int64_t token = arguments.tokens == nullptr ? arguments.first_token + row : arguments.tokens[row];
    sum_weights(p, arguments.columns, token, found[row]);
    found[row].peak = only_peak(p, arguments.columns, found[row].largest);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
