// What layer normalisation asks of its arguments.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "headlight/normalization.h"
#include "ops/check.h"
#include "ops/rows/in_place.h"

namespace headlight::ops {

inline void check_epsilon(std::string_view operation, float epsilon) {
  if (epsilon >= 0 && std::isfinite(epsilon)) return;
  fail(operation, "epsilon is ", epsilon, ", expected a finite number ≥ 0");
}

// Returns the addresses of y.
inline Extent check_layer_norm(const TypedView<2>& x, const MutableTypedView<2>& y, const LayerNormOptions& options) {
  constexpr std::string_view kName = "layer_norm";
  const Extent y_extent = check_rows(kName, x, y);
  const auto check_vector = [&](std::string_view argument, std::span<const float> values) {
    if (values.empty()) return;
    check_length(kName, argument, values.size(), x.extent(1), "[E], or empty");
    check_disjoint(kName, "y", y_extent, argument, extent_of(values));
  };
  check_vector("weight", options.weight);
  check_vector("bias", options.bias);
  check_residual(kName, options.residual, x, y, y_extent);
  check_epsilon(kName, options.epsilon);
  return y_extent;
}

inline Extent check_rms_norm(const TypedView<2>& x, const MutableTypedView<2>& y, const RmsNormOptions& options) {
  constexpr std::string_view kName = "rms_norm";
  const Extent y_extent = check_rows(kName, x, y);
  check_length(kName, "weight", options.weight.size(), x.extent(1), "[E], or empty");
  check_disjoint(kName, "y", y_extent, "weight", extent_of(options.weight));
  check_residual(kName, options.added, x, y, y_extent, "added");
  check_epsilon(kName, options.epsilon);
  return y_extent;
}

// Of either norm; returns the addresses of x.
inline Extent check_norm_backward(std::string_view operation, const TypedView<2>& x, const TypedView<2>& y_gradient,
                                  const LayerNormGradients& gradients, std::span<const float> weight, float epsilon) {
  check_widened_type(operation, "x", x.type);
  check_widened_type(operation, "y_gradient", y_gradient.type);
  check_widened_type(operation, "x's gradient", gradients.x.type);
  check_widened_type(operation, "residual", gradients.residual.type);
  const Extent x_extent = check_view(operation, "x", x);
  const Extent y_extent = check_view(operation, "y_gradient", y_gradient);
  check_shape(operation, "y_gradient", y_gradient.shape, x.shape, "the shape of x");
  check_length(operation, "weight", weight.size(), x.extent(1), "[E], or empty");
  check_length(operation, "weight's gradient", gradients.weight.size(), x.extent(1), "[E], or empty");
  check_length(operation, "bias's gradient", gradients.bias.size(), x.extent(1), "[E], or empty");
  check_epsilon(operation, epsilon);
  const Extent weight_extent = extent_of(weight);
  const Extent weight_gradient = extent_of(gradients.weight);
  const Extent bias_gradient = extent_of(gradients.bias);
  const auto check_sums_apart = [&](std::string_view argument, const Extent& extent) {
    check_disjoint(operation, "weight's gradient", weight_gradient, argument, extent);
    check_disjoint(operation, "bias's gradient", bias_gradient, argument, extent);
  };
  check_sums_apart("x", x_extent);
  check_sums_apart("y_gradient", y_extent);
  check_sums_apart("weight", weight_extent);
  check_disjoint(operation, "weight's gradient", weight_gradient, "bias's gradient", bias_gradient);
  if (!gradients.x) return x_extent;
  const Extent out_extent = check_output(operation, "x's gradient", gradients.x, x.shape, "the shape of x");
  check_same_or_disjoint(operation, "x's gradient", gradients.x, out_extent, "x", x, x_extent);
  check_same_or_disjoint(operation, "x's gradient", gradients.x, out_extent, "y_gradient", y_gradient, y_extent);
  check_disjoint(operation, "x's gradient", out_extent, "weight", weight_extent);
  check_disjoint(operation, "x's gradient", out_extent, "weight's gradient", weight_gradient);
  check_disjoint(operation, "x's gradient", out_extent, "bias's gradient", bias_gradient);
  if (!gradients.residual) return x_extent;
  const Extent residual_extent = check_view(operation, "residual", gradients.residual);
  check_shape(operation, "residual", gradients.residual.shape, x.shape, "the shape of x");
  check_same_or_disjoint(operation, "x's gradient", gradients.x, out_extent, "residual", gradients.residual,
                         residual_extent);
  check_sums_apart("residual", residual_extent);
  return x_extent;
}

}  // namespace headlight::ops
