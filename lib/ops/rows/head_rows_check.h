// What operations on the heads of rows ask of their arguments.
#pragma once

#include <string_view>

#include "headlight/head_rows.h"
#include "ops/rows/in_place.h"
#include "ops/rows/layer_norm_check.h"

namespace headlight::ops {

// Rows of heads as rows of numbers.
template <class Pointer>
[[nodiscard]] AnyTypedView<2, Pointer> flat(const AnyTypedView<3, Pointer>& view) noexcept {
  if (!view) return {};
  return {view.type, view.data, {view.extent(0), view.extent(1) * view.extent(2)}, {view.stride(0), 1}};
}

// Checks that the heads of a row lie one behind the other, beside what every view must be.
template <class Pointer>
Extent check_heads(std::string_view operation, std::string_view argument, const AnyTypedView<3, Pointer>& view) {
  check_widened_type(operation, argument, view.type);
  const Extent extent = check_view(operation, argument, view);
  if (!extent.is_empty() && view.extent(1) > 1 && view.stride(1) != view.extent(2)) {
    fail(operation, argument, "'s heads lie ", view.stride(1), " numbers apart, expected ", view.extent(2),
         ", one behind the other");
  }
  return extent;
}

// Returns the addresses of the angles, none where they are not given.
inline Extent check_rotation(std::string_view operation, const Rotation& rotation, std::int64_t rows,
                             std::int64_t head_dim) {
  const View<const float, 2>& table = rotation.cosines_and_sines;
  if (rotation.pairing != RotaryPairing::halves && rotation.pairing != RotaryPairing::interleaved) {
    fail(operation, "pairing is ", static_cast<int>(rotation.pairing), ", expected one of the enum");
  }
  if (!table) return {};
  const Extent extent = check_view(operation, "cosines_and_sines", table);
  const std::array<std::int64_t, 2> expected = {rows, -1};
  check_shape(operation, "cosines_and_sines", table.shape, expected, "[N, dims]");
  if (table.extent(1) % 2 != 0 || table.extent(1) > head_dim) {
    fail(operation, "cosines_and_sines has ", table.extent(1), " columns, expected an even number up to ", head_dim);
  }
  return extent;
}

inline void check_head_norm(std::string_view operation, const HeadRowsOptions& options, std::int64_t head_dim) {
  if (options.norm > NormKind::rms) {
    fail(operation, "norm is ", static_cast<int>(options.norm), ", expected one of the enum");
  }
  check_length(operation, "weight", options.weight.size(), head_dim, "[D], or empty");
  check_length(operation, "bias", options.bias.size(), head_dim, "[D], or empty");
  if (options.norm == NormKind::none && !options.weight.empty()) {
    fail(operation, "weight is given, expected none without a norm");
  }
  if (options.norm != NormKind::layer && !options.bias.empty()) {
    fail(operation, "bias is given, expected none but with NormKind::layer");
  }
  if (options.norm != NormKind::rms && options.one_plus_weight) {
    fail(operation, "one_plus_weight is true, expected false but with NormKind::rms");
  }
  check_epsilon(operation, options.epsilon);
}

// Checks x and a y of its shape, which may be x itself, and all options; returns the addresses of y.
inline Extent check_head_rows(std::string_view operation, const TypedView<3>& x, const MutableTypedView<3>& y,
                              const HeadRowsOptions& options) {
  const Extent x_extent = check_heads(operation, "x", x);
  const Extent y_extent = check_heads(operation, "y", y);
  check_given(operation, "x", x, y.shape == x.shape);
  check_shape(operation, "y", y.shape, x.shape, "the shape of x");
  check_no_self_overlap(operation, "y", y.shape, y.strides);
  const Extent angles = check_rotation(operation, options.rotation, x.extent(0), x.extent(2));
  check_head_norm(operation, options, x.extent(2));
  check_same_or_disjoint(operation, "y", y, y_extent, "x", x, x_extent);
  check_disjoint(operation, "y", y_extent, "cosines_and_sines", angles);
  check_disjoint(operation, "y", y_extent, "weight", extent_of(options.weight));
  check_disjoint(operation, "y", y_extent, "bias", extent_of(options.bias));
  return y_extent;
}

// Returns the addresses of y_gradient.
inline Extent check_head_rows_backward(std::string_view operation, const TypedView<3>& x,
                                       const TypedView<3>& y_gradient, const HeadRowsGradients& gradients,
                                       const HeadRowsOptions& options) {
  const Extent dy_extent = check_heads(operation, "y_gradient", y_gradient);
  const Extent angles = check_rotation(operation, options.rotation, y_gradient.extent(0), y_gradient.extent(2));
  check_head_norm(operation, options, y_gradient.extent(2));
  const bool reads_x = options.norm != NormKind::none;
  Extent x_extent;
  if (reads_x) {
    x_extent = check_heads(operation, "x", x);
    check_given(operation, "x", x, y_gradient.shape == x.shape);
    check_shape(operation, "x", x.shape, y_gradient.shape, "the shape of y_gradient");
  }
  check_length(operation, "weight's gradient", gradients.weight.size(), y_gradient.extent(2), "[D], or empty");
  check_length(operation, "bias's gradient", gradients.bias.size(), y_gradient.extent(2), "[D], or empty");
  if (!reads_x && !gradients.weight.empty())
    fail(operation, "weight's gradient is given, expected none without a norm");
  if (options.norm != NormKind::layer && !gradients.bias.empty()) {
    fail(operation, "bias's gradient is given, expected none but with NormKind::layer");
  }
  const auto check_apart = [&](std::string_view argument, const Extent& output) {
    check_disjoint(operation, argument, output, "cosines_and_sines", angles);
    check_disjoint(operation, argument, output, "weight", extent_of(options.weight));
  };
  const Extent of_weight = extent_of(gradients.weight), of_bias = extent_of(gradients.bias);
  for (const auto& [argument, sums] : {std::pair{"weight's gradient", of_weight}, {"bias's gradient", of_bias}}) {
    check_apart(argument, sums);
    check_disjoint(operation, argument, sums, "y_gradient", dy_extent);
    check_disjoint(operation, argument, sums, "x", x_extent);
  }
  check_disjoint(operation, "weight's gradient", of_weight, "bias's gradient", of_bias);
  if (!gradients.x) return dy_extent;
  const Extent out = check_heads(operation, "x's gradient", gradients.x);
  check_shape(operation, "x's gradient", gradients.x.shape, y_gradient.shape, "the shape of y_gradient");
  check_no_self_overlap(operation, "x's gradient", gradients.x.shape, gradients.x.strides);
  check_same_or_disjoint(operation, "x's gradient", gradients.x, out, "y_gradient", y_gradient, dy_extent);
  if (reads_x) check_same_or_disjoint(operation, "x's gradient", gradients.x, out, "x", x, x_extent);
  check_apart("x's gradient", out);
  check_disjoint(operation, "x's gradient", out, "weight's gradient", of_weight);
  check_disjoint(operation, "x's gradient", out, "bias's gradient", of_bias);
  return dy_extent;
}

}  // namespace headlight::ops
