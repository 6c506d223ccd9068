// The second operand of a product as it lies in memory: what its numbers are, and in which order. B of a matrix
// product, and keys and values of attention.
#pragma once

#include <cassert>
#include <cstdint>

#include "headlight/number_type.h"
#include "simd/integers.h"

namespace headlight::kernels {

// Where number (k, j) of a matrix [K, N] lies.
enum class OperandLayout : std::uint8_t {
  rows,     // at k · stride + j
  columns,  // at j · stride + k: the matrix is transposed
  // Packed for a tile: rows in blocks, of which the one that begins with row k begins at k · stride; in a block of n
  // rows the panel that begins with column j begins at j · n and is [n][columns of the panel]. Of 16-bit numbers two
  // rows, one behind the other in each column, count as one: [⌈n / 2⌉][columns of the panel][2], zeros at the end (of
  // float16 one behind the other in each vector of columns: [⌈n / 2⌉][vectors of the panel][2][columns of a vector]);
  // of 8-bit numbers four, in the order 0, 2, 1, 3. Behind those panels lie for each column, in floats, its scale and,
  // in int32, the sum of its numbers in each block. Of 4-bit numbers eight rows are one: gemm/int4_quantize-inl.h says
  // how they lie in a word. Behind those panels lie, as bfloat16, the scales of their groups: those of the panel that
  // begins with column j begin at j · groups and are [groups][columns of the panel].
  panels,
};

// A block of int8 has no more rows than that. Its sums are exact in int32 and would be up to four times as many. A
// matrix of one block, as nearly all are, has no sum that is added as a float.
inline constexpr std::int64_t kInt8Depth = 16384;

// So many numbers of int4, along a column, share a scale. Blocks are as those of int8.
inline constexpr int kInt4Group = 32;

// bytes_of() of the public header. Inlined always: see simd/integers.h.
[[gnu::always_inline]] constexpr std::int64_t bytes_of_number(NumberType type) noexcept {
  return type == NumberType::float32 ? 4 : type >= NumberType::int8 ? 1 : 2;
}

// So many numbers further on. Inlined always: see simd/integers.h.
[[nodiscard]] [[gnu::always_inline]] inline const void* numbers_behind(const void* data, std::int64_t numbers,
                                                                       NumberType type) noexcept {
  return static_cast<const char*>(data) + numbers * bytes_of_number(type);
}
[[nodiscard]] [[gnu::always_inline]] inline void* numbers_behind(void* data, std::int64_t numbers,
                                                                 NumberType type) noexcept {
  return static_cast<char*>(data) + numbers * bytes_of_number(type);
}

// Made where a matrix is packed, loaded or handed in; understood where a tile reads it. Between the two it is passed on
// as it is.
struct Operand {
  NumberType type = NumberType::float32;
  OperandLayout layout = OperandLayout::rows;
  std::int64_t stride = 0;  // in numbers; of panels with a single block of rows, 0
  const void* data = nullptr;
  // Of rows of int8: number (k, j) is scales[k · scale_stride] times what is stored, rounded to a float. Of columns of
  // float32 that are to be packed: what is stored are integers, and number (k, j) is one times scales[j ·
  // scale_stride + g], where g = 0 of what panels of int8 take, and of int4 the group of k.
  const float* scales = nullptr;
  std::int64_t scale_stride = 0;

  // Inlined always: see simd/integers.h.
  [[nodiscard]] [[gnu::always_inline]] const float* floats() const noexcept {
    assert(type == NumberType::float32);
    return static_cast<const float*>(data);
  }

  // Numbers of another type, as they lie.
  template <class Storage>
  [[nodiscard]] [[gnu::always_inline]] const Storage* numbers() const noexcept {
    assert(sizeof(Storage) == static_cast<std::size_t>(bytes_of_number(type)));
    return static_cast<const Storage*>(data);
  }

  // Panels of any type, read four bytes at a time.
  [[nodiscard]] [[gnu::always_inline]] const float* words() const noexcept { return static_cast<const float*>(data); }
  // Rows of panels that hold so many rows of the matrix.
  [[nodiscard]] [[gnu::always_inline]] std::int64_t panel_rows(std::int64_t count) const noexcept {
    const std::int64_t bytes = bytes_of_number(type);
    if (type == NumberType::int4) return divide_up(count, 8);
    return bytes == 2 ? divide_up(count, 2) : bytes == 1 ? divide_up(count, 4) : count;
  }
  // Those of a matrix of so many rows, with what lies behind the panels.
  [[nodiscard]] [[gnu::always_inline]] std::int64_t packed_rows(std::int64_t depth) const noexcept {
    if (type == NumberType::int4) return panel_rows(depth) + divide_up(divide_up(depth, kInt4Group), 2);
    return panel_rows(depth) + (type == NumberType::int8 ? 1 + divide_up(depth, kInt8Depth) : 0);
  }
  // That of column j at [j], and the sums of block i at [(1 + i) · stride + j].
  [[nodiscard]] [[gnu::always_inline]] const float* column_scales(std::int64_t depth) const noexcept {
    return words() + panel_rows(depth) * stride;
  }
  [[nodiscard]] [[gnu::always_inline]] const std::uint16_t* group_scales(std::int64_t depth) const noexcept {
    return reinterpret_cast<const std::uint16_t*>(words() + panel_rows(depth) * stride);
  }
  // Where the panel of `column` begins in the block of `count` rows from row `first` on, counted in words.
  [[nodiscard]] [[gnu::always_inline]] std::int64_t panel_at(std::int64_t first, std::int64_t count,
                                                             std::int64_t column) const noexcept {
    return panel_rows(first) * stride + column * panel_rows(count);
  }

  // Number (k, j) of rows or columns.
  [[nodiscard]] [[gnu::always_inline]] const float* floats_at(std::int64_t k, std::int64_t j) const noexcept {
    return floats() + (layout == OperandLayout::columns ? j * stride + k : k * stride + j);
  }

  // The same operand so many numbers further on, and so many scales where it has any.
  [[nodiscard]] [[gnu::always_inline]] Operand from(std::int64_t numbers,
                                                    std::int64_t scales_further = 0) const noexcept {
    Operand moved = *this;
    moved.data = numbers_behind(data, numbers, type);
    if (scales != nullptr) moved.scales += scales_further;
    return moved;
  }
  // From row k on.
  [[nodiscard]] [[gnu::always_inline]] Operand from_row(std::int64_t k) const noexcept {
    return from(k * stride, k * scale_stride);
  }
};

}  // namespace headlight::kernels
