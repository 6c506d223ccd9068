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
void check_same_or_disjoint(std::string_view operation, std::string_view output, const Output& y,
                            const Extent& y_extent, std::string_view input, const Input& x, const Extent& x_extent) {
  const bool same = static_cast<const void*>(x.data) == static_cast<const void*>(y.data) && x.strides == y.strides &&
                    type_of(x) == type_of(y);
  if (!same) check_disjoint(operation, output, y_extent, input, x_extent);
}

// Checks x and a y of its shape, which may be x itself; returns the addresses of y.
inline Extent check_rows(std::string_view operation, const TypedView<2>& x, const MutableTypedView<2>& y) {
  check_widened_type(operation, "x", x.type);
  check_widened_type(operation, "y", y.type);
  const Extent x_extent = check_view(operation, "x", x);
  const Extent y_extent = check_view(operation, "y", y);
  check_given(operation, "x", x, y.shape == x.shape);
  check_shape(operation, "y", y.shape, x.shape, "the shape of x");
  check_no_self_overlap(operation, "y", y.shape, y.strides);
  check_same_or_disjoint(operation, "y", y, y_extent, "x", x, x_extent);
  return y_extent;
}

// Checks what a row-wise operation goes back from, the gradient of its output and that of its input, which may be
// either of both. Errors call the first one `name`, and its shape `shape_of`.
inline void check_row_gradients(std::string_view operation, std::string_view name, std::string_view shape_of,
                                const TypedView<2>& x, const TypedView<2>& y_gradient,
                                const MutableTypedView<2>& x_gradient) {
  check_widened_type(operation, name, x.type);
  check_widened_type(operation, "y_gradient", y_gradient.type);
  check_widened_type(operation, "x_gradient", x_gradient.type);
  const Extent x_extent = check_view(operation, name, x);
  const Extent y_extent = check_view(operation, "y_gradient", y_gradient);
  const Extent out_extent = check_view(operation, "x_gradient", x_gradient);
  check_given(operation, name, x, y_gradient.shape == x.shape);
  check_shape(operation, "y_gradient", y_gradient.shape, x.shape, shape_of);
  check_shape(operation, "x_gradient", x_gradient.shape, x.shape, shape_of);
  check_no_self_overlap(operation, "x_gradient", x_gradient.shape, x_gradient.strides);
  check_same_or_disjoint(operation, "x_gradient", x_gradient, out_extent, name, x, x_extent);
  check_same_or_disjoint(operation, "x_gradient", x_gradient, out_extent, "y_gradient", y_gradient, y_extent);
}

// Checks what is added to x or y on the way, where it is given; y may be that itself.
inline void check_residual(std::string_view operation, const TypedView<2>& residual, const TypedView<2>& x,
                           const MutableTypedView<2>& y, const Extent& y_extent,
                           std::string_view argument = "residual") {
  if (!residual) return;
  check_widened_type(operation, argument, residual.type);
  const Extent residual_extent = check_view(operation, argument, residual);
  check_shape(operation, argument, residual.shape, x.shape, "the shape of x");
  check_same_or_disjoint(operation, "y", y, y_extent, argument, residual, residual_extent);
}

}  // namespace headlight::ops
