// Where rows of a typed tensor lie.
#pragma once

#include <cstdint>

#include "headlight/typed_view.h"
#include "kernels/operand.h"

namespace headlight::ops {

// Element (b, l, h, 0) of a tensor [B, L, H, D].
template <class Pointer>
[[nodiscard]] Pointer row_at(const AnyTypedView<4, Pointer>& view, std::int64_t b, std::int64_t l,
                             std::int64_t h) noexcept {
  return kernels::numbers_behind(view.data, b * view.strides[0] + l * view.strides[1] + h * view.strides[2], view.type);
}

// That row by itself.
[[nodiscard]] inline kernels::Operand operand_at(const TypedView<4>& view, std::int64_t b, std::int64_t l,
                                                 std::int64_t h) noexcept {
  return {.type = view.type, .data = row_at(view, b, l, h)};
}

}  // namespace headlight::ops
