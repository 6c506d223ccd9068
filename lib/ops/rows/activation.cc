#include "headlight/activation.h"

#include "kernels/kernels.h"
#include "ops/rows/blocks.h"
#include "ops/rows/checks.h"
#include "ops/rows/in_place.h"
#include "runtime/costs.h"

namespace headlight {

void activate(Engine& engine, Activation activation, View<const float, 2> x, View<float, 2> y) {
  ops::check_rows("activate", x, y);
  ops::check_activation("activate", activation);
  if (x.size() == 0) return;

  const auto kernel = kernels::row_kernels(engine.isa()).activate;
  ops::for_row_blocks(engine, x.extent(0), x.extent(1), runtime::costs::kActivation,
                      [&](std::int64_t first, std::int64_t rows) {
                        kernel(activation, ops::rows_from(x, first), ops::rows_from(y, first), rows, x.extent(1));
                      });
}

void activate_backward(Engine& engine, Activation activation, View<const float, 2> x, View<const float, 2> y_gradient,
                       View<float, 2> x_gradient) {
  constexpr std::string_view kName = "activate_backward";
  ops::check_row_gradients(kName, "x", "the shape of x", x, y_gradient, x_gradient);
  ops::check_activation(kName, activation);
  if (x.size() == 0) return;

  const auto kernel = kernels::row_gradient_kernels(engine.isa()).activate;
  ops::for_row_blocks(engine, x.extent(0), x.extent(1), runtime::costs::kActivationBackward,
                      [&](std::int64_t first, std::int64_t rows) {
                        kernel(activation, ops::rows_from(x, first), ops::rows_from(y_gradient, first),
                               ops::rows_from(x_gradient, first), rows, x.extent(1));
                      });
}

}  // namespace headlight
