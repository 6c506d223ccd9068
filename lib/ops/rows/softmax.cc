#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "ops/check.h"
#include "ops/rows/blocks.h"
#include "ops/rows/in_place.h"
#include "runtime/costs.h"

namespace headlight {

void softmax(Engine& engine, View<const float, 2> x, View<float, 2> y) {
  ops::check_rows("softmax", x, y);
  if (x.size() == 0) return;

  // Three sweeps in cache with one exponential an element.
  const auto kernel = kernels::row_kernels(engine.isa()).softmax;
  ops::for_row_blocks(engine, x.extent(0), x.extent(1), runtime::costs::kSoftmax,
                      [&](std::int64_t first, std::int64_t rows) {
                        kernel(ops::rows_from(x, first), ops::rows_from(y, first), rows, x.extent(1));
                      });
}

void softmax_backward(Engine& engine, View<const float, 2> y, View<const float, 2> y_gradient,
                      View<float, 2> x_gradient) {
  ops::check_row_gradients("softmax_backward", "y", "the shape of y", y, y_gradient, x_gradient);
  if (y.size() == 0) return;

  const auto kernel = kernels::row_gradient_kernels(engine.isa()).softmax;
  ops::for_row_blocks(engine, y.extent(0), y.extent(1), runtime::costs::kSoftmaxBackward,
                      [&](std::int64_t first, std::int64_t rows) {
                        kernel(ops::rows_from(y, first), ops::rows_from(y_gradient, first),
                               ops::rows_from(x_gradient, first), rows, y.extent(1));
                      });
}

}  // namespace headlight
