// The second operand of a product as it lies in memory: what its numbers are, and in which order. B of a matrix
// product, and keys and values of attention.
#pragma once

#include <cstdint>

namespace headlight::kernels {

// What an operand is stored in. Products are summed in float32 whatever it is.
enum class NumberType : std::uint8_t { float32 };

// Where number (k, j) of a matrix [K, N] lies.
enum class OperandLayout : std::uint8_t {
  rows,     // at k · stride + j
  columns,  // at j · stride + k: the matrix is transposed
  // Packed for a tile: rows in blocks, of which the one that begins with row k begins at k · stride; in a block of n
  // rows the panel that begins with column j begins at j · n and is [n][columns of the panel].
  panels,
};

// Made where a matrix is packed, loaded or handed in; understood where a tile reads it. Between the two it is passed on
// as it is.
struct Operand {
  NumberType type = NumberType::float32;
  OperandLayout layout = OperandLayout::rows;
  std::int64_t stride = 0;  // in numbers; of panels with a single block of rows, 0
  const void* data = nullptr;

  // Inlined always: see simd/integers.h.
  [[nodiscard]] [[gnu::always_inline]] const float* floats() const noexcept { return static_cast<const float*>(data); }

  // Number (k, j) of rows or columns.
  [[nodiscard]] [[gnu::always_inline]] const float* floats_at(std::int64_t k, std::int64_t j) const noexcept {
    return floats() + (layout == OperandLayout::columns ? j * stride + k : k * stride + j);
  }

  // The same operand so many numbers further on.
  [[nodiscard]] [[gnu::always_inline]] Operand from(std::int64_t numbers) const noexcept {
    Operand moved = *this;
    moved.data = floats() + numbers;
    return moved;
  }
};

}  // namespace headlight::kernels
