// Rows of heads side by side, as attention reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "headlight/number_type.h"
#include "headlight/typed_view.h"
#include "kernels/operand.h"

namespace headlight::layers {

// [N, heads · D] as [N, heads, D].
inline MutableTypedView<3> by_heads(const MutableTypedView<2>& rows, std::int64_t head_dim) noexcept {
  return {rows.type, rows.data, {rows.extent(0), rows.extent(1) / head_dim, head_dim}, {rows.stride(0), head_dim, 1}};
}

// [B, L, heads · D] as [B, L, heads, D].
template <class T>
View<T, 4> split_heads(const View<T, 3>& x, std::int64_t heads) noexcept {
  const std::int64_t head_dim = x.extent(2) / heads;
  return {x.data, {x.extent(0), x.extent(1), heads, head_dim}, {x.stride(0), x.stride(1), head_dim, 1}};
}

template <class Pointer>
AnyTypedView<4, Pointer> split_heads(const AnyTypedView<3, Pointer>& x, std::int64_t heads) noexcept {
  const View<const float, 4> laid = split_heads(View<const float, 3>(nullptr, x.shape, x.strides), heads);
  return {x.type, x.data, laid.shape, laid.strides};
}

// Zeros in place of those heads of x [B, L, heads · D]: of any type they are zero bytes.
inline void silence(std::span<const std::int64_t> silenced, const MutableTypedView<3>& x,
                    std::int64_t head_dim) noexcept {
  const std::size_t bytes = static_cast<std::size_t>(head_dim) * bytes_of(x.type);
  for (const std::int64_t head : silenced) {
    for (std::int64_t b = 0; b < x.extent(0); ++b) {
      for (std::int64_t i = 0; i < x.extent(1); ++i) {
        const std::int64_t first = b * x.stride(0) + i * x.stride(1) + head * head_dim;
        std::memset(kernels::numbers_behind(x.data, first, x.type), 0, bytes);
      }
    }
  }
}

}  // namespace headlight::layers
