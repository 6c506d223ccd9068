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

inline void check_gate(std::string_view operation, const TypedView<2>& a, const TypedView<2>& b,
                       const MutableTypedView<2>& y) {
  check_widened_type(operation, "a", a.type);
  const Extent a_extent = check_view(operation, "a", a);
  check_given(operation, "a", a, b.shape == a.shape);
  const Extent b_extent = check_like_a(operation, "b", b, a);
  const Extent y_extent = check_like_a(operation, "y", y, a);
  check_no_self_overlap(operation, "y", y.shape, y.strides);
  check_same_or_disjoint(operation, "y", y, y_extent, "a", a, a_extent);
  check_same_or_disjoint(operation, "y", y, y_extent, "b", b, b_extent);
}

}  // namespace headlight::ops
