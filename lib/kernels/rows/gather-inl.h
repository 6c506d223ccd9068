// Sums of rows: embedding lookup (rows of several tables) and mean pooling (the rows of a sequence).
#pragma once

#include "kernels/rows/kernels.h"
#include "kernels/rows/sweep-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// out = some columns of one row of each table, added in the order of the tables.
template <class Some>
HEADLIGHT_INLINE void sum_of_tables(Some some, const float* const* table_rows, int count, std::int64_t at, float* out) {
  Vec sums[Some::kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < Some::kVectors; ++v) sums[v] = some.get(table_rows[0] + at + v * kLanes);
  for (int t = 1; t < count; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < Some::kVectors; ++v) sums[v] = add(sums[v], some.get(table_rows[t] + at + v * kLanes));
  }
#pragma GCC unroll 4
  for (int v = 0; v < Some::kVectors; ++v) some.put(sums[v], out + v * kLanes);
}

inline void embed(const kernels::EmbeddingTable* tables, int count, float* out, std::int64_t out_stride,
                  std::int64_t rows, std::int64_t columns) noexcept {
  const float* table_rows[kernels::kMaxEmbeddingTables];
  for (std::int64_t n = 0; n < rows; ++n, out += out_stride) {
    for (int t = 0; t < count; ++t) table_rows[t] = tables[t].rows + tables[t].ids[n] * tables[t].stride;
    walk_columns<4>(columns, [&](auto some, std::int64_t at) { sum_of_tables(some, table_rows, count, at, out + at); });
  }
}

// out = mean over rows of some columns, each in ascending order of rows.
template <class Some>
HEADLIGHT_INLINE void mean_of_columns(Some some, const float* x, std::int64_t x_stride, std::int64_t rows, float* out) {
  Vec sums[Some::kVectors];
#pragma GCC unroll 4
  for (Vec& one : sums) one = zero();
  for (std::int64_t row = 0; row < rows; ++row, x += x_stride) {
#pragma GCC unroll 4
    for (int v = 0; v < Some::kVectors; ++v) sums[v] = add(sums[v], some.get(x + v * kLanes));
  }
  const Vec by = broadcast(static_cast<float>(rows));
#pragma GCC unroll 4
  for (int v = 0; v < Some::kVectors; ++v) some.put(div(sums[v], by), out + v * kLanes);
}

// Divides the row by max(‖row‖₂, 1e-12). NaN stays NaN: it is not below the floor.
HEADLIGHT_INLINE void l2_normalize_row(float* row, std::int64_t columns) {
  const Vec norm = sqrt(broadcast(dot_of_rows(row, row, columns)));
  const Vec least = broadcast(1e-12f);
  const Vec by = select(less(norm, least), least, norm);
  sweep_row(columns, [&](auto some, int, std::int64_t at) { some.put(div(some.get(row + at), by), row + at); });
}

inline void mean_pool(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t columns, float* out,
                      bool l2_normalize) noexcept {
  if (rows == 0) {
    for (std::int64_t e = 0; e < columns; ++e) out[e] = 0.0f;
    return;
  }
  walk_columns<4>(columns,
                  [&](auto some, std::int64_t at) { mean_of_columns(some, x + at, x_stride, rows, out + at); });
  if (l2_normalize) l2_normalize_row(out, columns);
}

}  // namespace headlight::HEADLIGHT_TARGET
