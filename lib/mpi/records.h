// Rows of several tensors side by side, as messages hold them: one record a row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headlight/typed_view.h"
#include "headlight/view.h"
#include "ops/rows/typed.h"
#include "simd/integers.h"

namespace headlight::mpi {

// Whether somebody asks for it: a share may have no rows, and then needs no memory either.
template <class T, int Rank>
[[nodiscard]] bool is_given(const View<T, Rank>& view) noexcept {
  return view || view.shape != typename View<T, Rank>::Shape{};
}

template <int Rank, class Pointer>
[[nodiscard]] bool is_given(const AnyTypedView<Rank, Pointer>& view) noexcept {
  return view || view.shape != typename AnyTypedView<Rank, Pointer>::Shape{};
}

// Rows first … first + count − 1 of a tensor.
template <class T>
[[nodiscard]] View<T, 4> some_rows(const View<T, 4>& tensor, std::int64_t first, std::int64_t count) noexcept {
  return {tensor.data + first * tensor.stride(1),
          {tensor.extent(0), count, tensor.extent(2), tensor.extent(3)},
          tensor.strides};
}
template <class Pointer>
[[nodiscard]] AnyTypedView<4, Pointer> some_rows(const AnyTypedView<4, Pointer>& tensor, std::int64_t first,
                                                 std::int64_t count) noexcept {
  return {tensor.type,
          ops::row_at(tensor, 0, first, 0),
          {tensor.extent(0), count, tensor.extent(2), tensor.extent(3)},
          tensor.strides};
}
// The same of [B, H, L]; of one that is not given, nothing.
template <class T>
[[nodiscard]] View<T, 3> some_rows(const View<T, 3>& rows, std::int64_t first, std::int64_t count) noexcept {
  if (!is_given(rows)) return {};
  return {rows.data + first * rows.stride(2), {rows.extent(0), rows.extent(1), count}, rows.strides};
}

// [B, H, L] as [B, L, H, 1], and back.
template <class T>
[[nodiscard]] View<T, 4> as_rows(const View<T, 3>& view) noexcept {
  return {view.data,
          {view.extent(0), view.extent(2), view.extent(1), 1},
          {view.stride(0), view.stride(2), view.stride(1), 1}};
}
template <class T>
[[nodiscard]] View<T, 3> as_numbers(const View<T, 4>& view) noexcept {
  return {
      view.data, {view.extent(0), view.extent(2), view.extent(1)}, {view.stride(0), view.stride(2), view.stride(1)}};
}

// Every stride-th head from `first` on.
[[nodiscard]] inline TypedView<4> some_heads(const TypedView<4>& tensor, std::int64_t first,
                                             std::int64_t stride) noexcept {
  return {tensor.type,
          ops::row_at(tensor, 0, 0, first),
          {tensor.extent(0), tensor.extent(1), tensor.extent(2) / stride, tensor.extent(3)},
          {tensor.stride(0), tensor.stride(1), stride * tensor.stride(2), tensor.stride(3)}};
}

// The bytes of a row's numbers of one head.
template <class AnyView>
[[nodiscard]] std::size_t bytes_of_row(const AnyView& tensor) noexcept {
  return static_cast<std::size_t>(tensor.extent(3)) * bytes_of(tensor.type);
}

// Between tensors of one type.
inline void copy_rows(const TypedView<4>& from, const MutableTypedView<4>& to) noexcept {
  const std::size_t bytes = bytes_of_row(from);
  if (bytes == 0) return;
  for (std::int64_t b = 0; b < from.extent(0); ++b) {
    for (std::int64_t i = 0; i < from.extent(1); ++i) {
      for (std::int64_t h = 0; h < from.extent(2); ++h) {
        std::memcpy(ops::row_at(to, b, i, h), ops::row_at(from, b, i, h), bytes);
      }
    }
  }
}

// [B, L, H, 1] of float32 as [B, L, H]; of nothing, nothing.
[[nodiscard]] inline View<const float, 3> as_scales(const TypedView<4>& view) noexcept {
  if (!is_given(view)) return {};
  return {static_cast<const float*>(view.data),
          {view.extent(0), view.extent(1), view.extent(2)},
          {view.stride(0), view.stride(1), view.stride(2)}};
}

// One tensor of a record: so many numbers a head, of that type.
struct Field {
  std::int64_t dim;
  NumberType type = NumberType::float32;
};

// Tensors [B, n, H, dim] of the same heads.
template <std::size_t kTensors>
struct Records {
  std::int64_t batch;
  std::int64_t heads;
  std::array<Field, kTensors> fields;

  // Each field begins at a multiple of the largest number's bytes.
  [[nodiscard]] std::int64_t bytes_of_field(std::size_t n) const noexcept {
    return round_up(batch * heads * fields[n].dim * static_cast<std::int64_t>(bytes_of(fields[n].type)),
                    std::int64_t{sizeof(float)});
  }
  [[nodiscard]] std::int64_t bytes() const noexcept {
    std::int64_t all = 0;
    for (std::size_t n = 0; n < kTensors; ++n) all += bytes_of_field(n);
    return all;
  }
  [[nodiscard]] MutableTypedView<4> operator()(std::byte* rows, std::int64_t count, std::size_t tensor) const noexcept {
    for (std::size_t before = 0; before < tensor; ++before) rows += bytes_of_field(before);
    const auto& [dim, type] = fields[tensor];
    return {type,
            rows,
            {batch, count, heads, dim},
            {heads * dim, bytes() / static_cast<std::int64_t>(bytes_of(type)), dim, 1}};
  }
  // Of a field of float32.
  [[nodiscard]] View<float, 4> floats(std::byte* rows, std::int64_t count, std::size_t tensor) const noexcept {
    const MutableTypedView<4> view = (*this)(rows, count, tensor);
    return {static_cast<float*>(view.data), view.shape, view.strides};
  }
};

}  // namespace headlight::mpi
