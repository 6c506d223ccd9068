// Rows of several tensors side by side, as they travel: one record a row.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "headlight/view.h"

namespace headlight::mpi {

// Whether somebody asks for it: a share may have no rows, and then needs no memory either.
template <class T, int Rank>
[[nodiscard]] bool is_given(const View<T, Rank>& view) noexcept {
  return view || view.shape != typename View<T, Rank>::Shape{};
}

// Rows first … first + count − 1 of a tensor.
template <class T>
[[nodiscard]] View<T, 4> some_rows(const View<T, 4>& tensor, std::int64_t first, std::int64_t count) noexcept {
  return {tensor.data + first * tensor.stride(1),
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

// Every step-th head from `first` on.
template <class T>
[[nodiscard]] View<T, 4> some_heads(const View<T, 4>& tensor, std::int64_t first, std::int64_t step) noexcept {
  return {tensor.data + first * tensor.stride(2),
          {tensor.extent(0), tensor.extent(1), tensor.extent(2) / step, tensor.extent(3)},
          {tensor.stride(0), tensor.stride(1), step * tensor.stride(2), tensor.stride(3)}};
}

inline void copy_rows(const View<const float, 4>& from, const View<float, 4>& to) noexcept {
  for (std::int64_t b = 0; b < from.extent(0); ++b) {
    for (std::int64_t i = 0; i < from.extent(1); ++i) {
      for (std::int64_t h = 0; h < from.extent(2); ++h) {
        std::copy_n(&from(b, i, h, 0), from.extent(3), &to(b, i, h, 0));
      }
    }
  }
}

// Tensors [B, n, H, dim] of some dims and the same heads.
template <std::size_t kTensors>
struct Records {
  std::int64_t batch;
  std::int64_t heads;
  std::array<std::int64_t, kTensors> dims;

  [[nodiscard]] std::int64_t floats() const noexcept {
    std::int64_t all = 0;
    for (const std::int64_t dim : dims) all += dim;
    return batch * heads * all;
  }
  [[nodiscard]] View<float, 4> operator()(float* rows, std::int64_t count, std::size_t tensor) const noexcept {
    for (std::size_t before = 0; before < tensor; ++before) rows += batch * heads * dims[before];
    return {rows, {batch, count, heads, dims[tensor]}, {heads * dims[tensor], floats(), dims[tensor], 1}};
  }
};

}  // namespace headlight::mpi
