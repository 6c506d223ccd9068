// What activations and gates ask of their arguments.
#pragma once

#include <string_view>

#include "headlight/activation_kind.h"
#include "ops/rows/in_place.h"

namespace headlight::ops {

inline void check_activation(std::string_view operation, Activation activation) {
  if (activation <= kLastActivation) return;
  fail(operation, "activation is ", static_cast<int>(activation), ", expected one of the enum");
}

// A matrix of the shape of a, which the caller has checked.
template <class AnyView>
Extent check_like_a(std::string_view operation, std::string_view argument, const AnyView& view, const TypedView<2>& a) {
  check_widened_type(operation, argument, view.type);
  const Extent extent = check_view(operation, argument, view);
  check_shape(operation, argument, view.shape, a.shape, "the shape of a");
  return extent;
}

// Returns the addresses of y.
inline Extent check_gate(std::string_view operation, const TypedView<2>& a, const TypedView<2>& b,
                         const MutableTypedView<2>& y) {
  check_widened_type(operation, "a", a.type);
  const Extent a_extent = check_view(operation, "a", a);
  check_given(operation, "a", a, b.shape == a.shape);
  const Extent b_extent = check_like_a(operation, "b", b, a);
  const Extent y_extent = check_like_a(operation, "y", y, a);
  check_no_self_overlap(operation, "y", y.shape, y.strides);
  check_same_or_disjoint(operation, "y", y, y_extent, "a", a, a_extent);
  check_same_or_disjoint(operation, "y", y, y_extent, "b", b, b_extent);
  return y_extent;
}

// Gradients are written part by part, that of a first, when a and b have been read.
inline void check_gate_backward(std::string_view operation, const TypedView<2>& a, const TypedView<2>& b,
                                const TypedView<2>& y_gradient, const MutableTypedView<2>& a_gradient,
                                const MutableTypedView<2>& b_gradient) {
  check_widened_type(operation, "a", a.type);
  const Extent a_extent = check_view(operation, "a", a);
  check_given(operation, "a", a, y_gradient.shape == a.shape);
  const Extent b_extent = check_like_a(operation, "b", b, a);
  const Extent y_extent = check_like_a(operation, "y_gradient", y_gradient, a);
  const Extent to_a = check_like_a(operation, "a_gradient", a_gradient, a);
  const Extent to_b = check_like_a(operation, "b_gradient", b_gradient, a);
  check_no_self_overlap(operation, "a_gradient", a_gradient.shape, a_gradient.strides);
  check_no_self_overlap(operation, "b_gradient", b_gradient.shape, b_gradient.strides);
  check_disjoint(operation, "a_gradient", to_a, "b_gradient", to_b);
  check_disjoint(operation, "a_gradient", to_a, "y_gradient", y_extent);
  check_same_or_disjoint(operation, "a_gradient", a_gradient, to_a, "a", a, a_extent);
  check_same_or_disjoint(operation, "a_gradient", a_gradient, to_a, "b", b, b_extent);
  check_same_or_disjoint(operation, "b_gradient", b_gradient, to_b, "a", a, a_extent);
  check_same_or_disjoint(operation, "b_gradient", b_gradient, to_b, "b", b, b_extent);
  check_same_or_disjoint(operation, "b_gradient", b_gradient, to_b, "y_gradient", y_gradient, y_extent);
}

}  // namespace headlight::ops
