#include <array>

#include "headlight/normalization.h"
#include "ops/rows/buffers.h"
#include "ops/rows/layer_norm_check.h"
#include "ops/rows/sums.h"
#include "runtime/costs.h"

namespace headlight {
namespace {

constexpr std::string_view kName = "layer_norm_backward";

}  // namespace

void layer_norm_backward(Engine& engine, const TypedView<2>& x, const TypedView<2>& y_gradient,
                         const LayerNormGradients& gradients, const LayerNormOptions& options) {
  ops::check_layer_norm_backward(x, y_gradient, gradients, options);
  if (x.size() == 0) return;

  const std::int64_t columns = x.extent(1);
  // Without a gradient of x it is added to nothing, and nobody has checked it.
  const TypedView<2> residual = gradients.x ? gradients.residual : TypedView<2>();
  const ops::RowBuffers buffers(engine, kName, columns, ops::any_narrow(x, y_gradient, residual, gradients.x));
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).layer_norm;
  const auto compute = [&](int worker, std::int64_t first, std::int64_t rows, float* weight_sums, float* bias_sums) {
    buffers.compute<3>(worker, {x, y_gradient, residual}, gradients.x, first, rows,
                       [&](const ops::InputRows<3>& in, ops::OutputRows out, std::int64_t, std::int64_t some) {
                         kernel({.x = in[0],
                                 .y_gradient = in[1],
                                 .residual = in[2],
                                 .x_gradient = out,
                                 .rows = some,
                                 .columns = columns,
                                 .weight = options.weight.empty() ? nullptr : options.weight.data(),
                                 .epsilon = options.epsilon,
                                 .weight_gradient = weight_sums,
                                 .bias_gradient = bias_sums});
                       });
  };
  if (gradients.weight.empty() && gradients.bias.empty()) {
    ops::for_row_blocks(
        engine, x.extent(0), columns, runtime::costs::kLayerNormBackward,
        [&](std::int64_t first, std::int64_t rows, int worker) { compute(worker, first, rows, nullptr, nullptr); });
    return;
  }
  const std::array<float*, 2> sums = {gradients.weight.empty() ? nullptr : gradients.weight.data(),
                                      gradients.bias.empty() ? nullptr : gradients.bias.data()};
  ops::add_sums_over_rows(engine, kName, x.extent(0), columns, runtime::costs::kLayerNormBackward, sums,
                          [&](std::int64_t first, std::int64_t rows, const std::array<float*, 2>& partial, int worker) {
                            compute(worker, first, rows, partial[0], partial[1]);
                          });
}

}  // namespace headlight
