// What layers that turn hidden states into hidden states refuse.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "headlight/tensor.h"
#include "ops/check.h"
#include "ops/rows/in_place.h"

namespace headlight::layers {

// x [B, L, width], as forward() and backward() read it. Returns the addresses touched.
inline ops::Extent check_x(std::string_view layer, const View<const float, 3>& x, std::int64_t width) {
  const ops::Extent extent = ops::check_view(layer, "x", x);
  const std::array<std::int64_t, 3> expected = {-1, -1, width};
  ops::check_shape(layer, "x", x.shape, expected, "[B, L, E]");
  return extent;
}

struct HiddenExtents {
  ops::Extent x, y;
};

// x [B, L, width] → y of its shape, which may be x; and a residual of that shape, where it is given, which may be y.
// Returns the addresses touched.
inline HiddenExtents check_hidden_states(std::string_view layer, const View<const float, 3>& x, const View<float, 3>& y,
                                         std::int64_t width, const View<const float, 3>& residual = {}) {
  const ops::Extent x_extent = check_x(layer, x, width);
  const ops::Extent y_extent = ops::check_view(layer, "y", y);
  ops::check_shape(layer, "y", y.shape, x.shape, "the shape of x");
  ops::check_no_self_overlap(layer, "y", y.shape, y.strides);
  ops::check_same_or_disjoint(layer, "y", y, y_extent, "x", x, x_extent);
  if (residual) {
    const ops::Extent extent = ops::check_view(layer, "residual", residual);
    ops::check_shape(layer, "residual", residual.shape, x.shape, "the shape of x");
    ops::check_same_or_disjoint(layer, "y", y, y_extent, "residual", residual, extent);
  }
  return {x_extent, y_extent};
}

// In training y lies apart from x, which backward() reads again.
inline HiddenExtents check_training_states(std::string_view layer, const View<const float, 3>& x,
                                           const View<float, 3>& y, std::int64_t width,
                                           const View<const float, 3>& residual = {}) {
  const HiddenExtents extents = check_hidden_states(layer, x, y, width, residual);
  ops::check_disjoint(layer, "y", extents.y, "x", extents.x);
  return extents;
}

}  // namespace headlight::layers
