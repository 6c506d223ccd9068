// B of a product: how a matrix lies that is multiplied by.
#pragma once

#include <cstdint>

#include "kernels/operand.h"

namespace headlight::kernels {

enum class GemmLayout : std::uint8_t {
  panels,   // packed, as gemm_kernels.h draws it
  rows,     // [K, N], columns next to each other
  columns,  // [N, K], transposed
};

// Made where a matrix is packed, loaded or handed in; understood where a tile reads it. Between the two it is passed on
// as it is.
struct GemmOperand {
  NumberType type = NumberType::float32;
  GemmLayout layout = GemmLayout::rows;
  std::int64_t depth = 0;    // K
  std::int64_t columns = 0;  // N; of panels those of the whole matrix, which are filled up to whole vectors
  // Elements from one row (rows) or column (columns) to the next; panels have no such distance.
  std::int64_t stride = 0;
  const void* data = nullptr;
  // Of panels: the column that a block begins at, a whole number of panels. `data` is then still the whole matrix.
  std::int64_t first_column = 0;

  // Inlined always: instruction sets share these.
  [[nodiscard]] [[gnu::always_inline]] const float* floats() const noexcept { return static_cast<const float*>(data); }

  // Element (k, j) of rows or columns.
  [[nodiscard]] [[gnu::always_inline]] const float* floats_at(std::int64_t k, std::int64_t j) const noexcept {
    return floats() + (layout == GemmLayout::columns ? j * stride + k : k * stride + j);
  }

  // Leaves the columns before `column` out.
  [[gnu::always_inline]] void begin_at_column(std::int64_t column) noexcept {
    if (layout == GemmLayout::panels) {
      first_column += column;
    } else {
      data = floats_at(0, column);
    }
  }
};

}  // namespace headlight::kernels
