#include <array>

#include "headlight/normalization.h"
#include "ops/rows/buffers.h"
#include "ops/rows/layer_norm_check.h"
#include "ops/rows/norm_weight.h"
#include "ops/rows/sums.h"
#include "runtime/costs.h"

namespace headlight {
namespace {

// What the gradient needs to know of a norm.
struct Norm {
  std::string_view operation;
  std::span<const float> weight;
  float epsilon;
  bool root_mean_square;
  bool one_plus_weight;
};

void norm_backward(Engine& engine, const Norm& norm, const TypedView<2>& x, const TypedView<2>& y_gradient,
                   const LayerNormGradients& gradients) {
  const ops::Extent x_extent =
      ops::check_norm_backward(norm.operation, x, y_gradient, gradients, norm.weight, norm.epsilon);
  if (x_extent.is_empty()) return;

  const std::int64_t columns = x.extent(1);
  // Without a gradient of x it is added to nothing, and nobody has checked it.
  const TypedView<2> residual = gradients.x ? gradients.residual : TypedView<2>();
  const ops::RowBuffers buffers(engine, norm.operation, columns, ops::any_narrow(x, y_gradient, residual, gradients.x));
  const ops::NormWeight weight(engine, norm.operation, norm.weight, norm.one_plus_weight);
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).layer_norm;
  const auto compute = [&](int worker, std::int64_t first, std::int64_t rows, float* weight_sums, float* bias_sums) {
    buffers.compute(worker, {&x, &y_gradient, &residual}, gradients.x, first, rows,
                    [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t, std::int64_t some) {
                      kernel({.x = in[0],
                              .y_gradient = in[1],
                              .residual = in[2],
                              .x_gradient = out,
                              .rows = some,
                              .columns = columns,
                              .weight = weight.data(),
                              .epsilon = norm.epsilon,
                              .root_mean_square = norm.root_mean_square,
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
  const std::array<float*, 2> sums = {ops::given(gradients.weight), ops::given(gradients.bias)};
  ops::add_sums_over_rows(engine, norm.operation, x.extent(0), columns, runtime::costs::kLayerNormBackward, sums,
                          [&](std::int64_t first, std::int64_t rows, const std::array<float*, 2>& partial, int worker) {
                            compute(worker, first, rows, partial[0], partial[1]);
                          });
}

}  // namespace

void layer_norm_backward(Engine& engine, const TypedView<2>& x, const TypedView<2>& y_gradient,
                         const LayerNormGradients& gradients, const LayerNormOptions& options) {
  constexpr std::string_view kName = "layer_norm_backward";
  if (options.residual) ops::fail(kName, "residual is given, expected none: x is the sum that was normalised");
  norm_backward(engine, {kName, options.weight, options.epsilon, false, false}, x, y_gradient, gradients);
}

void rms_norm_backward(Engine& engine, const TypedView<2>& x, const TypedView<2>& y_gradient,
                       const RmsNormGradients& gradients, const RmsNormOptions& options) {
  norm_backward(engine, {"rms_norm_backward", options.weight, options.epsilon, true, options.one_plus_weight}, x,
                y_gradient, {.x = gradients.x, .residual = gradients.residual, .weight = gradients.weight});
}

}  // namespace headlight
