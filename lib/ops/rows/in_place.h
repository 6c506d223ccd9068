// The one kind of overlap that row-wise operations allow.
#pragma once

#include "ops/check.h"
#include "ops/typed_check.h"

namespace headlight::ops {

// What the numbers of a view are.
template <class T, int Rank>
[[nodiscard]] constexpr NumberType type_of(const View<T, Rank>&) noexcept {
  return number_type_of<std::remove_const_t<T>>;
}
template <int Rank, class Pointer>
[[nodiscard]] NumberType type_of(const AnyTypedView<Rank, Pointer>& view) noexcept {
  return view.type;
}

// An output may be the very same view as an input (element by element) or lie apart from it, nothing between. Here and
// below views are of floats, or of a type that the program learns as it runs.
template <class Input, class Output>
[[gnu::noinline]] void check_same_view(std::string_view operation, std::string_view output, const Output& y,
                                       const Extent& y_extent, std::string_view input, const Input& x,
                                       const Extent& x_extent) {
  const bool same = static_cast<const void*>(x.data) == static_cast<const void*>(y.data) && x.shape == y.shape &&
                    are_same_places(x.shape, x.strides, y.strides) && type_of(x) == type_of(y);
  if (!same) check_disjoint(operation, output, y_extent, input, x_extent);
}
template <class Input, class Output>
[[gnu::always_inline]] inline void check_same_or_disjoint(std::string_view operation, std::string_view output,
                                                          const Output& y, const Extent& y_extent,
                                                          std::string_view input, const Input& x,
                                                          const Extent& x_extent) {
  if (ranges_overlap(y_extent, x_extent)) check_same_view(operation, output, y, y_extent, input, x, x_extent);
}

// Checks x and a y of its shape, which may be x itself; returns the addresses of y.
Extent check_rows(std::string_view operation, const TypedView<2>& x, const MutableTypedView<2>& y);

// Checks what a row-wise operation goes back from, the gradient of its output and that of its input, which may be
// either of both. Errors call the first one `name`, and its shape `shape_of`. Returns the addresses of x.
Extent check_row_gradients(std::string_view operation, std::string_view name, std::string_view shape_of,
                           const TypedView<2>& x, const TypedView<2>& y_gradient,
                           const MutableTypedView<2>& x_gradient);

// Checks what is added to x or y on the way, where it is given; y may be that itself.
void check_residual(std::string_view operation, const TypedView<2>& residual, const TypedView<2>& x,
                    const MutableTypedView<2>& y, const Extent& y_extent, std::string_view argument = "residual");

}  // namespace headlight::ops
