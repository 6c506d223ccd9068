#include <array>

#include "headlight/normalization.h"
#include "ops/rows/blocks.h"
#include "ops/rows/layer_norm_check.h"
#include "ops/rows/sums.h"
#include "runtime/costs.h"

namespace headlight {

namespace {

constexpr std::string_view kName = "layer_norm_backward";

}  // namespace

void layer_norm_backward(Engine& engine, View<const float, 2> x, View<const float, 2> y_gradient,
                         const LayerNormGradients& gradients, const LayerNormOptions& options) {
  ops::check_layer_norm_backward<View<const float, 2>, View<float, 2>>(
      x, y_gradient, {gradients.x, gradients.residual, gradients.weight, gradients.bias}, options);
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
                          [&](std::int64_t first, std::int64_t rows, const std::array<float*, 2>& partial, int) {
                            compute(first, rows, partial[0], partial[1]);
                          });
}

}  // namespace headlight
