// Where rows of a typed tensor lie.
#pragma once

#include <cstdint>

#include "headlight/storage_types.h"
#include "headlight/typed_view.h"
#include "kernels/operand.h"

namespace headlight::ops {

// Element (b, l, h, 0) of a tensor [B, L, H, D].
template <class Pointer>
[[nodiscard]] Pointer row_at(const AnyTypedView<4, Pointer>& view, std::int64_t b, std::int64_t l,
                             std::int64_t h) noexcept {
  return kernels::numbers_behind(view.data, b * view.strides[0] + l * view.strides[1] + h * view.strides[2], view.type);
}

// Number d of a row, for those who look at few.
[[nodiscard]] inline float number_of(const kernels::Operand& row, std::int64_t d) noexcept {
  if (row.type == NumberType::float32) return row.floats()[d];
  if (row.type == NumberType::int8) return *row.scales * static_cast<float>(row.numbers<std::int8_t>()[d]);
  const std::uint16_t bits = row.numbers<std::uint16_t>()[d];
  return row.type == NumberType::bfloat16 ? static_cast<float>(BFloat16::from_bits(bits))
                                          : static_cast<float>(Float16::from_bits(bits));
}

// That row by itself.
[[nodiscard]] inline kernels::Operand operand_at(const TypedView<4>& view, std::int64_t b, std::int64_t l,
                                                 std::int64_t h) noexcept {
  return {.type = view.type, .data = row_at(view, b, l, h)};
}

// That row and those behind it of the same head. From a single row no stride leads to another: any is allowed, and is
// not multiplied.
[[nodiscard]] inline kernels::Operand rows_at(const TypedView<4>& view, std::int64_t b, std::int64_t l,
                                              std::int64_t h) noexcept {
  return {.type = view.type, .stride = view.extent(1) > 1 ? view.stride(1) : 0, .data = row_at(view, b, l, h)};
}

}  // namespace headlight::ops
