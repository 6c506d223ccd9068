// Rows that are moved to an origin of their own, and the matrices of their products.
#pragma once

#include "kernels/rows/kernels.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/integers.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE const float* chosen_row(const kernels::ChosenRows& rows, std::int64_t i) {
  const std::int64_t at = rows.first + i * rows.stride;
  return rows.x + (rows.numbers == nullptr ? at : rows.numbers[at]) * rows.x_stride;
}

// Goes over some columns of all rows: sum[v] ← take(v, x, i, sum[v]) for row i, x its first column of vector v, from
// zeros on again every kTermsOfLane rows; end(sum, begin) takes what came together since row `begin`.
template <class Some, class Take, class End>
HEADLIGHT_INLINE void sum_in_runs(const kernels::ChosenRows& rows, Some, std::int64_t at, Take take, End end) {
  for (std::int64_t begin = 0; begin < rows.count; begin += kTermsOfLane) {
    const std::int64_t last = smaller(rows.count, begin + kTermsOfLane);
    Vec sum[Some::kVectors];
    for (Vec& one : sum) one = zero();
    for (std::int64_t i = begin; i < last; ++i) {
      const float* const x = chosen_row(rows, i) + at;
      for (int v = 0; v < Some::kVectors; ++v) sum[v] = take(v, x + v * kLanes, i, sum[v]);
    }
    end(sum, begin);
  }
}

// Differences from the first row: their sum is nothing where all rows are equal. Half a share of each at a time, for a
// whole difference of large rows, and the sum of such, might pass what a float32 holds.
template <class Some>
HEADLIGHT_INLINE void near_mean_of(const kernels::ChosenRows& rows, Some some, std::int64_t at, float* mean) {
  const Vec share = broadcast(1.0f / static_cast<float>(rows.count)), half = broadcast(0.5f);
  const float* const first = chosen_row(rows, 0) + at;
  Vec minus_half[Some::kVectors], all[Some::kVectors];
  for (int v = 0; v < Some::kVectors; ++v) {
    minus_half[v] = mul(some.get(first + v * kLanes), broadcast(-0.5f));
    all[v] = zero();
  }
  sum_in_runs(
      rows, some, at,
      [&](int v, const float* x, std::int64_t, Vec sum) {
        return fma(fma(some.get(x), half, minus_half[v]), share, sum);
      },
      [&](const Vec* sum, std::int64_t) {
        for (int v = 0; v < Some::kVectors; ++v) all[v] = add(all[v], sum[v]);
      });
  for (int v = 0; v < Some::kVectors; ++v) {
    some.put(add(add(some.get(first + v * kLanes), all[v]), all[v]), mean + at + v * kLanes);
  }
}

inline void near_mean(const kernels::ChosenRows& rows, float* mean) noexcept {
  walk_columns<2>(rows.columns, [&](auto some, std::int64_t at) { near_mean_of(rows, some, at, mean); });
}

// y and sums begin at the first of these columns.
template <class Some>
HEADLIGHT_INLINE Vec shift_columns(const kernels::ChosenRows& rows, Some some, std::int64_t at, const float* from,
                                   float factor, float* y, std::int64_t y_stride, double* sums, Vec largest) {
  const Vec power = broadcast(factor);
  Vec minus_origin[Some::kVectors];
  for (int v = 0; v < Some::kVectors; ++v) minus_origin[v] = mul(some.get(from + v * kLanes), broadcast(-factor));
  sum_in_runs(
      rows, some, at,
      [&](int v, const float* x, std::int64_t i, Vec sum) {
        const Vec difference = fma(some.get(x), power, minus_origin[v]);
        some.put(difference, y + i * y_stride + v * kLanes);
        largest = max(abs(difference), largest);
        return add(sum, difference);
      },
      [&](const Vec* sum, std::int64_t begin) {
        if (sums == nullptr) return;
        float of_these[Some::kVectors * kLanes];
        for (int v = 0; v < Some::kVectors; ++v) store(sum[v], of_these + v * kLanes);
        for (int column = 0; column < (Some::kVectors - 1) * kLanes + some.count; ++column) {
          sums[column] = (begin == 0 ? 0.0 : sums[column]) + static_cast<double>(of_these[column]);
        }
      });
  return largest;
}

inline float shift_rows(const kernels::ChosenRows& rows, const float* origin, float factor, float* y,
                        std::int64_t y_stride, double* sums) noexcept {
  Vec largest = zero();
  walk_columns<2>(rows.columns, [&](auto some, std::int64_t at) {
    largest = shift_columns(rows, some, at, origin + at, factor, y + at, y_stride,
                            sums == nullptr ? nullptr : sums + at, largest);
  });
  return max_of_lanes(largest);
}

HEADLIGHT_INLINE double sum_of_row_in_float64(const float* x, std::int64_t columns) {
  double all = 0;
  for (std::int64_t first = 0; first < columns; first += kTermsOfLane * kLanes) {
    const std::int64_t end = smaller(columns, first + kTermsOfLane * kLanes);
    Vec sum = zero();
    std::int64_t at = first;
    for (; at + kLanes <= end; at += kLanes) sum = add(sum, load(x + at));
    if (at < end) sum = add(sum, load_partial(x + at, static_cast<int>(end - at)));
    all += static_cast<double>(sum_of_lanes(sum));
  }
  return all;
}

inline double centre_kernel(float* k, std::int64_t n, float* shifts) noexcept {
  const auto count = static_cast<double>(n);
  double trace = 0, total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto itself = static_cast<double>(k[i * n + i]);
    const double others = sum_of_row_in_float64(k + i * n, n) - itself;
    shifts[i] = static_cast<float>(others / (count - 2));
    total += others;
    trace += itself;
  }
  const double shift = total / ((count - 1) * (count - 2));
  // A row is written before where it and all later ones lie: nothing is lost.
  float* to = k;
  for (std::int64_t i = 0; i < n; ++i) {
    const float* const row = k + i * n;
    const Vec own = broadcast(static_cast<float>(shift - static_cast<double>(shifts[i])));
    std::int64_t j = i + 1;
    for (; j + kLanes <= n; j += kLanes, to += kLanes) store(add(load(row + j), sub(own, load(shifts + j))), to);
    if (j == n) continue;
    const int left = static_cast<int>(n - j);
    store_partial(add(load_partial(row + j, left), sub(own, load_partial(shifts + j, left))), to, left);
    to += left;
  }
  return trace;
}

}  // namespace headlight::HEADLIGHT_TARGET
