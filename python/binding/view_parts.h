// Parts of views, and whether views share memory. Who computes a call in parts asks about the whole first, for the
// engine sees a part at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "headlight/typed_view.h"
#include "headlight/view.h"

namespace headlight::python {

// Elements [first, first + count) of an axis.
template <class T, int Rank>
View<T, Rank> along(View<T, Rank> view, std::size_t axis, std::int64_t first, std::int64_t count) {
  view.data += first * view.strides[axis];
  view.shape[axis] = count;
  return view;
}
template <int Rank, class Pointer>
AnyTypedView<Rank, Pointer> along(AnyTypedView<Rank, Pointer> view, std::size_t axis, std::int64_t first,
                                  std::int64_t count) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte, std::byte>;
  view.data =
      static_cast<Byte*>(view.data) + first * view.strides[axis] * static_cast<std::int64_t>(bytes_of(view.type));
  view.shape[axis] = count;
  return view;
}

// The addresses of a view, from its first number to behind its last one. Strides that no index takes count for nothing.
struct Reach {
  std::intptr_t begin = 0, end = 0;

  template <int Rank, class Pointer>
  explicit Reach(const AnyTypedView<Rank, Pointer>& view)
      : begin(reinterpret_cast<std::intptr_t>(view.data)), end(begin) {
    if (view.size() == 0) return;
    for (int axis = 0; axis < Rank; ++axis) {
      const std::int64_t way = view.extent(axis) == 1 ? 0
                                                      : (view.extent(axis) - 1) * view.stride(axis) *
                                                            static_cast<std::int64_t>(bytes_of(view.type));
      (way < 0 ? begin : end) += way;
    }
    end += static_cast<std::intptr_t>(bytes_of(view.type));
  }
  explicit Reach(std::span<const float> list)
      : begin(reinterpret_cast<std::intptr_t>(list.data())),
        end(begin + static_cast<std::intptr_t>(list.size_bytes())) {}
};

inline bool apart(const Reach& a, const Reach& b) noexcept { return a.end <= b.begin || b.end <= a.begin; }

// Whether no two elements share an address, as axes show whose strides lead over what lies within them.
template <int Rank, class Pointer>
bool is_separate(const AnyTypedView<Rank, Pointer>& view) {
  std::array<std::pair<std::int64_t, std::int64_t>, Rank> axes;  // stride, extent
  for (int axis = 0; axis < Rank; ++axis) {
    axes[static_cast<std::size_t>(axis)] = {view.extent(axis) == 1 ? 0 : view.stride(axis), view.extent(axis)};
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t within = 0;
  for (const auto& [stride, extent] : axes) {
    if (extent <= 1) continue;
    if (stride <= within) return false;
    within += stride * (extent - 1);
  }
  return true;
}

}  // namespace headlight::python
