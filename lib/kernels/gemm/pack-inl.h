// One panel of B: [depth][columns], the last vector filled up with zeros. And the rows of a transposed A.
//
// An A that lies row by row has no packed form: the tile reads it where it lies. Copying rows into tiles is slower,
// also where row strides are a power of two. A transposed A is turned over: read in place, its rows may share one set
// of the first-level cache.
#pragma once

#include <cstdint>

#include "kernels/gemm/kernels.h"
#include "kernels/gemm/tile-inl.h"
#include "kernels/numbers-inl.h"
#include "kernels/square-inl.h"
#include "simd/integers.h"

namespace headlight::HEADLIGHT_TARGET {

// b [depth, columns], columns next to each other.
inline void gemm_pack_rows(const float* b, std::int64_t stride, std::int64_t depth, int columns,
                           float* panel) noexcept {
  if (columns == kGemmPanelWidth) {
    for (std::int64_t k = 0; k < depth; ++k, b += stride, panel += kGemmPanelWidth) {
#pragma GCC unroll 3
      for (int vector = 0; vector < kGemmPanelVectors; ++vector) {
        store(load(b + vector * kLanes), panel + vector * kLanes);
      }
    }
    return;
  }
  const int whole = columns / kLanes * kLanes;
  for (std::int64_t k = 0; k < depth; ++k, b += stride) {
    for (int column = 0; column < whole; column += kLanes, panel += kLanes) store(load(b + column), panel);
    if (whole == columns) continue;
    store(load_partial(b + whole, columns - whole), panel);
    panel += kLanes;
  }
}

// to[j · to_stride + i] = from[i · stride + j] for i < count ≤ kLanes and j < length; for count ≤ i < kLanes zeros.
inline void transpose_strip(const float* from, std::int64_t stride, int count, std::int64_t length, float* to,
                            std::int64_t to_stride) noexcept {
  for (std::int64_t j = 0; j < length; j += kLanes, from += kLanes, to += kLanes * to_stride) {
    turn_square<kLanes>(from, stride, count, static_cast<int>(smaller(kLanes, length - j)), to, to_stride);
  }
}

// b [columns, depth], a transposed B.
inline void gemm_pack_columns(const float* b, std::int64_t stride, std::int64_t depth, int columns,
                              float* panel) noexcept {
  const std::int64_t width = round_up(columns, kLanes);
  for (int first = 0; first < columns; first += kLanes) {
    const int left = columns - first;
    transpose_strip(b + first * stride, stride, left < kLanes ? left : kLanes, depth, panel + first, width);
  }
}

// Asks for `count` numbers of a row to come, of a matrix that is read down some of its columns: the hardware does not
// foresee where the next row of them lies. They come to the second-level cache, since such rows may share few sets of
// the first.
template <class Storage>
HEADLIGHT_INLINE void ask_for_row(const Storage* from, std::int64_t stride, std::int64_t k, std::int64_t depth,
                                  std::int64_t count) {
  constexpr std::int64_t kRowsAhead = 32, kOfLine = kBytesOfLine / sizeof(Storage);
  if (k + kRowsAhead >= depth) return;
  from += (k + kRowsAhead) * stride;
  for (std::int64_t i = 0; i < count; i += kOfLine) __builtin_prefetch(from + i, 0, 2);
}

// Columns [column, column + columns) of B's rows [first, first + depth), a vector of columns of kRows rows at a time:
// f(k, offset, rows), where row r has columns column + offset … of row first + k + r, and zeros behind the last column
// and the last row. Of each vector of columns k ascends. kRows is a power of two. Here B lies by rows.
template <int kRows, class Numbers, class Function>
HEADLIGHT_INLINE void walk_rows(const kernels::Operand& b, std::int64_t first, std::int64_t depth, std::int64_t column,
                                std::int64_t columns, const Function& f) {
  const auto* const from = b.numbers<typename Numbers::Storage>() + first * b.stride + column;
  Vec rows[kRows];
  for (std::int64_t k = 0; k < depth; k += kRows) {
    for (int r = 0; r < kRows; ++r) ask_for_row(from, b.stride, k + r, depth, columns);
    for (std::int64_t offset = 0; offset < columns; offset += kLanes) {
      const int count = static_cast<int>(smaller(kLanes, columns - offset));
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        rows[r] = k + r < depth ? load_numbers<Numbers>(from + (k + r) * b.stride + offset, count) : zero();
      }
      f(k, offset, rows);
    }
  }
}

// The same of a B of float32, however it lies.
template <int kRows, class Function>
HEADLIGHT_INLINE void walk_matrix(const kernels::Operand& b, std::int64_t first, std::int64_t depth,
                                  std::int64_t column, std::int64_t columns, const Function& f) {
  if (b.layout == kernels::OperandLayout::rows) {
    return walk_rows<kRows, StoredFloat32>(b, first, depth, column, columns, f);
  }
  const float* const from = b.floats_at(first, column);
  Vec rows[kRows];
  constexpr std::int64_t kTurned = smaller(kRows * kLanes, 64);  // of the stack 4 KiB on AVX-512
  alignas(64) float turned[kTurned * kLanes];
  for (std::int64_t offset = 0; offset < columns; offset += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, columns - offset));
    for (std::int64_t begin = 0; begin < depth; begin += kTurned) {
      const std::int64_t left = smaller(kTurned, depth - begin);
      transpose_strip(from + offset * b.stride + begin, b.stride, count, left, turned, kLanes);
      for (std::int64_t k = 0; k < left; k += kRows) {
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) rows[r] = k + r < left ? load(turned + (k + r) * kLanes) : zero();
        f(begin + k, offset, rows);
      }
    }
  }
}

// Scale g of at most kLanes columns of a B of integers; zeros behind the last.
HEADLIGHT_INLINE Vec given_scales(const kernels::Operand& b, std::int64_t column, int count, std::int64_t g) {
  alignas(64) float scales[kLanes] = {};
  for (int j = 0; j < count; ++j) scales[j] = b.scales[(column + j) * b.scale_stride + g];
  return load(scales);
}

// Distance between the rows of a packed A: whole vectors, and an odd number of cache lines, so that the rows of a tile
// lie in different sets of the first-level cache.
constexpr std::int64_t gemm_packed_row(std::int64_t depth) {
  return (divide_up(depth, kFloatsOfLine) | 1) * kFloatsOfLine;
}

// a [depth, rows], a transposed A, to rows that are so far apart.
inline void gemm_pack_transposed_a(const float* a, std::int64_t stride, std::int64_t depth, std::int64_t rows,
                                   float* packed, std::int64_t packed_stride) noexcept {
  for (std::int64_t k = 0; k < depth; k += kLanes) {
    transpose_strip(a + k * stride, stride, depth - k < kLanes ? static_cast<int>(depth - k) : kLanes, rows, packed + k,
                    packed_stride);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
