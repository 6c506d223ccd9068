// Keys and values laid out for the tiles.
#pragma once

#include "kernels/attention/tile-inl.h"
#include "kernels/operand.h"
#include "kernels/rows/sweep-inl.h"
#include "kernels/square-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// to[d][j] = from[j][d] for j < keys ≤ kLanes, d < dims ≤ kLanes.
template <class Numbers>
void pack_square(const typename Numbers::Storage* from, std::int64_t from_stride, int keys, int dims, Vec scales,
                 float* to, std::int64_t to_stride) {
  Vec square[kLanes];
  load_turned<Numbers>(from, from_stride, keys, dims, square);
#pragma GCC unroll 16
  for (int d = 0; d < kLanes; ++d) {
    if (d < dims) store_lanes(scaled_by<Numbers>(square[d], scales), to + d * to_stride, keys);
  }
}

// panel[d][j] = key[j][d] for j < keys ≤ kKeyPanel and the columns d < head_dim; rows of the panel panel_stride ≥ keys
// apart.
template <class Numbers>
void pack_panel(const kernels::Operand& rows, std::int64_t keys, std::int64_t head_dim, float* panel,
                std::int64_t panel_stride) {
  const auto* const key = rows.numbers<typename Numbers::Storage>();
  const std::int64_t key_stride = rows.stride;
  for (std::int64_t j = 0; j < keys; j += kLanes) {
    // Squares visit sixteen rows at once, which no hardware prefetcher follows: ask for the next ones in memory order.
    for (std::int64_t ahead = j + kPrefetchRows; ahead < j + kPrefetchRows + kLanes; ++ahead) {
      for (std::int64_t d = 0; d < head_dim * Numbers::kOfColumn; d += Numbers::kOfLine) {
        __builtin_prefetch(key + ahead * key_stride + d);
      }
    }
    const int key_count = static_cast<int>(smaller(kLanes, keys - j));
    const Vec scales = scales_of_rows<Numbers>(rows.scales + j * rows.scale_stride, rows.scale_stride, key_count);
    for (std::int64_t d = 0; d < head_dim; d += kLanes) {
      pack_square<Numbers>(key + j * key_stride + Numbers::kOfColumn * d, key_stride, key_count,
                           static_cast<int>(smaller(kLanes, head_dim - d)), scales, panel + d * panel_stride + j,
                           panel_stride);
    }
  }
}

template <class Numbers>
void pack_keys(const kernels::Operand& key, std::int64_t keys, std::int64_t head_dim, float* panels) noexcept {
  for (std::int64_t j = 0; j < keys; j += kKeyPanel) {
    const std::int64_t width = smaller(kKeyPanel, keys - j);
    pack_panel<Numbers>(key.from_row(j), width, head_dim, panels + j * head_dim, width);
  }
}

// A key at a time, all its panels: a panel at a time would read a line of each key, which lie a power of two apart
// where heads lie side by side and then share one set of the first cache level.
template <class Numbers>
void pack_values(const kernels::Operand& value, std::int64_t keys, std::int64_t value_dim, float* panels,
                 std::int64_t panel_stride) noexcept {
  const std::int64_t width = smaller(kValuePanel, round_up(value_dim, kLanes));
  for (std::int64_t j = 0; j < keys; ++j) {
    const auto* from = value.numbers<typename Numbers::Storage>() + j * value.stride;
    const float* const scale = value.scales + j * value.scale_stride;
    for (std::int64_t d = 0; d < value_dim; d += Numbers::kOfLine)
      __builtin_prefetch(from + kPrefetchRows * value.stride + d);
    float* panel = panels + j * width;
    for (std::int64_t column = 0; column < value_dim; column += kValuePanel, panel += panel_stride) {
      const std::int64_t columns = smaller(width, value_dim - column);
      std::int64_t d = 0;
      for (; d + kLanes <= columns; d += kLanes) {
        store(scaled_by_row<Numbers>(Numbers::load(from + column + d), scale), panel + d);
      }
      if (d < columns) {
        const Vec last = Numbers::load_partial(from + column + d, static_cast<int>(columns - d));
        store(scaled_by_row<Numbers>(last, scale), panel + d);
        d += kLanes;
      }
      for (; d < width; d += kLanes) store(zero(), panel + d);
    }
  }
}

// to[r] = from[r] · factor, contiguous.
template <class Numbers>
void scaled_rows(const kernels::Operand& from, float factor, std::int64_t rows, std::int64_t columns, float* to) {
  const auto* row = from.numbers<typename Numbers::Storage>();
  for (std::int64_t r = 0; r < rows; ++r, row += from.stride, to += columns) {
    if constexpr (kHasScales<Numbers>) {
      // Only keys and values have scales, and nobody asks for those times a factor.
      scaled_row<Numbers>(row, from.scales[r * from.scale_stride], to, columns);
    } else {
      scaled_row<Numbers>(row, factor, to, columns);
    }
  }
}

// x · 0 is 0 for every finite x, and NaN for the others. Four sums, or the latency of each addition would show.
template <class Numbers>
bool all_finite(const kernels::Operand& from, std::int64_t rows, std::int64_t columns) noexcept {
  Vec sums[4] = {zero(), zero(), zero(), zero()};
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto* row = from.numbers<typename Numbers::Storage>() + r * from.stride;
    std::int64_t d = 0;
    for (; d + 4 * kLanes <= columns; d += 4 * kLanes) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sums[i] = fma(Numbers::load(row + d + i * kLanes), zero(), sums[i]);
    }
    for (; d + kLanes <= columns; d += kLanes) sums[0] = fma(Numbers::load(row + d), zero(), sums[0]);
    if (d < columns) sums[1] = fma(Numbers::load_partial(row + d, static_cast<int>(columns - d)), zero(), sums[1]);
  }
  return sum_of_lanes(add(add(sums[0], sums[1]), add(sums[2], sums[3]))) == 0.0f;
}

// The same of int8: the scales decide. One whose product with the largest integer overflows counts as infinite.
inline bool all_scales_finite(const kernels::Operand& from, std::int64_t rows) noexcept {
  const Vec largest = broadcast(128.0f);
  Vec sum = zero();
  for (std::int64_t r = 0; r < rows; r += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, rows - r));
    const Vec scales = scales_of_rows<StoredInt8>(from.scales + r * from.scale_stride, from.scale_stride, count);
    sum = fma(mul(scales, largest), zero(), sum);
  }
  return sum_of_lanes(sum) == 0.0f;
}

}  // namespace headlight::HEADLIGHT_TARGET
