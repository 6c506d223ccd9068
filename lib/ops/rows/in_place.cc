#include "ops/rows/in_place.h"

namespace headlight::ops {
namespace {

// A row that ends before the next one begins shares no address with it.
void check_rows_apart(std::string_view operation, std::string_view output, const MutableTypedView<2>& view) {
  if (view.stride(0) < view.extent(1)) check_no_self_overlap(operation, output, view.shape, view.strides);
}

}  // namespace

Extent check_rows(std::string_view operation, const TypedView<2>& x, const MutableTypedView<2>& y) {
  check_widened_type(operation, "x", x.type);
  check_widened_type(operation, "y", y.type);
  const Extent x_extent = check_view(operation, "x", x);
  const Extent y_extent = check_view(operation, "y", y);
  if (y.shape != x.shape) {
    check_given(operation, "x", x, false);
    fail_shape(operation, "y", y.shape, x.shape, "the shape of x");
  }
  check_rows_apart(operation, "y", y);
  check_same_or_disjoint(operation, "y", y, y_extent, "x", x, x_extent);
  return y_extent;
}

Extent check_row_gradients(std::string_view operation, std::string_view name, std::string_view shape_of,
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
  check_rows_apart(operation, "x_gradient", x_gradient);
  check_same_or_disjoint(operation, "x_gradient", x_gradient, out_extent, name, x, x_extent);
  check_same_or_disjoint(operation, "x_gradient", x_gradient, out_extent, "y_gradient", y_gradient, y_extent);
  return x_extent;
}

void check_residual(std::string_view operation, const TypedView<2>& residual, const TypedView<2>& x,
                    const MutableTypedView<2>& y, const Extent& y_extent, std::string_view argument) {
  if (!residual) return;
  check_widened_type(operation, argument, residual.type);
  const Extent residual_extent = check_view(operation, argument, residual);
  check_shape(operation, argument, residual.shape, x.shape, "the shape of x");
  check_same_or_disjoint(operation, "y", y, y_extent, argument, residual, residual_extent);
}

}  // namespace headlight::ops
