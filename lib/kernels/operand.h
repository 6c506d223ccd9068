// The second operand of a product as it lies in memory: what its numbers are, and in which order.
#pragma once

#include <cstdint>

namespace headlight::kernels {

// What an operand is stored in. Products are summed in float32 whatever it is.
enum class NumberType : std::uint8_t { float32 };

enum class OperandLayout : std::uint8_t {
  // Number (row, column) at row · stride + column.
  rows,
  // As AttentionKernels::pack_keys() leaves them: the panel that begins with key j at j · stride.
  key_panels,
  // As AttentionKernels::pack_values() leaves them: number (row, column) at column / value_panel · panel_stride + row ·
  // stride + column mod value_panel, with zeros behind the last column up to a whole vector.
  value_panels,
};

struct Operand {
  const void* data;
  std::int64_t stride;        // in numbers, as the next
  std::int64_t panel_stride;  // of value_panels
  NumberType type;
  OperandLayout layout;

  // Inlined always: see simd/integers.h.
  [[gnu::always_inline]] const float* floats() const noexcept { return static_cast<const float*>(data); }
  // The same operand so many numbers further on.
  [[gnu::always_inline]] [[nodiscard]] Operand from(std::int64_t numbers) const noexcept {
    Operand moved = *this;
    moved.data = floats() + numbers;
    return moved;
  }
};

}  // namespace headlight::kernels
