#include <array>
#include <cmath>

#include "headlight/normalization.h"
#include "ops/check.h"
#include "ops/in_place.h"
#include "ops/row_blocks.h"
#include "ops/row_sums.h"
#include "runtime/costs.h"

namespace headlight {

namespace {

constexpr std::string_view kName = "layer_norm_backward";

void check(const View<const float, 2>& x, const View<const float, 2>& y_gradient, const LayerNormGradients& gradients,
           const LayerNormOptions& options) {
  const ops::Extent x_extent = ops::check_view(kName, "x", x);
  const ops::Extent y_extent = ops::check_view(kName, "y_gradient", y_gradient);
  ops::check_shape(kName, "y_gradient", y_gradient.shape, x.shape, "the shape of x");
  ops::check_length(kName, "weight", options.weight.size(), x.extent(1), "[E], or empty");
  ops::check_length(kName, "weight's gradient", gradients.weight.size(), x.extent(1), "[E], or empty");
  ops::check_length(kName, "bias's gradient", gradients.bias.size(), x.extent(1), "[E], or empty");
  if (options.residual) ops::fail(kName, "residual is given, expected none: x is the sum that was normalised");
  if (!(options.epsilon >= 0) || !std::isfinite(options.epsilon)) {
    ops::fail(kName, "epsilon is " + std::to_string(options.epsilon) + ", expected a finite number ≥ 0");
  }
  const ops::Extent weight_extent = ops::extent_of(options.weight);
  const ops::Extent weight_gradient = ops::extent_of(gradients.weight);
  const ops::Extent bias_gradient = ops::extent_of(gradients.bias);
  const auto check_sums_apart = [&](std::string_view argument, const ops::Extent& extent) {
    ops::check_disjoint(kName, "weight's gradient", weight_gradient, argument, extent);
    ops::check_disjoint(kName, "bias's gradient", bias_gradient, argument, extent);
  };
  check_sums_apart("x", x_extent);
  check_sums_apart("y_gradient", y_extent);
  check_sums_apart("weight", weight_extent);
  ops::check_disjoint(kName, "weight's gradient", weight_gradient, "bias's gradient", bias_gradient);
  if (!gradients.x) return;
  const ops::Extent out_extent = ops::check_output(kName, "x's gradient", gradients.x, x.shape, "the shape of x");
  ops::check_same_or_disjoint(kName, "x's gradient", gradients.x, out_extent, "x", x, x_extent);
  ops::check_same_or_disjoint(kName, "x's gradient", gradients.x, out_extent, "y_gradient", y_gradient, y_extent);
  ops::check_disjoint(kName, "x's gradient", out_extent, "weight", weight_extent);
  ops::check_disjoint(kName, "x's gradient", out_extent, "weight's gradient", weight_gradient);
  ops::check_disjoint(kName, "x's gradient", out_extent, "bias's gradient", bias_gradient);
  if (!gradients.residual) return;
  const ops::Extent residual_extent = ops::check_view(kName, "residual", gradients.residual);
  ops::check_shape(kName, "residual", gradients.residual.shape, x.shape, "the shape of x");
  ops::check_same_or_disjoint(kName, "x's gradient", gradients.x, out_extent, "residual", gradients.residual,
                              residual_extent);
  check_sums_apart("residual", residual_extent);
}

}  // namespace

void layer_norm_backward(Engine& engine, View<const float, 2> x, View<const float, 2> y_gradient,
                         const LayerNormGradients& gradients, const LayerNormOptions& options) {
  check(x, y_gradient, gradients, options);
  if (x.size() == 0) return;

  const std::int64_t columns = x.extent(1);
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).layer_norm;
  const auto compute = [&](std::int64_t first, std::int64_t rows, float* weight_sums, float* bias_sums) {
    const View<float, 2>& to = gradients.x;
    const View<const float, 2>& residual = gradients.residual;
    kernel({.x = ops::rows_from(x, first),
            .y_gradient = ops::rows_from(y_gradient, first),
            .residual = ops::rows_from(residual, first),
            .x_gradient = ops::rows_from(to, first),
            .rows = rows,
            .columns = columns,
            .weight = options.weight.empty() ? nullptr : options.weight.data(),
            .epsilon = options.epsilon,
            .weight_gradient = weight_sums,
            .bias_gradient = bias_sums});
  };
  const bool wants_weight = !gradients.weight.empty();
  const bool wants_bias = !gradients.bias.empty();
  if (!wants_weight && !wants_bias) {
    ops::for_row_blocks(engine, x.extent(0), columns, runtime::costs::kLayerNormBackward,
                        [&](std::int64_t first, std::int64_t rows) { compute(first, rows, nullptr, nullptr); });
    return;
  }
  const std::array<float*, 2> sums = {wants_weight ? gradients.weight.data() : nullptr,
                                      wants_bias ? gradients.bias.data() : nullptr};
  ops::add_sums_over_rows(engine, kName, x.extent(0), columns, runtime::costs::kLayerNormBackward, sums,
                          [&](std::int64_t first, std::int64_t rows, const std::array<float*, 2>& partial) {
                            compute(first, rows, partial[0], partial[1]);
                          });
}

}  // namespace headlight
