#include "ops/rows/cap.h"

#include "kernels/kernels.h"
#include "ops/rows/blocks.h"
#include "runtime/costs.h"

namespace headlight::ops {

void cap_rows(Engine& engine, float factor, float cap, View<const float, 2> x, View<float, 2> y) {
  if (x.size() == 0) return;
  const auto kernel = kernels::row_kernels(engine.isa()).cap;
  for_row_blocks(engine, x.extent(0), x.extent(1), runtime::costs::kActivation,
                 [&](std::int64_t first, std::int64_t rows) {
                   kernel(factor / cap, cap, rows_from(x, first), rows_from(y, first), rows, x.extent(1));
                 });
}

void cap_rows_backward(Engine& engine, float factor, float cap, View<const float, 2> y, View<const float, 2> y_gradient,
                       View<float, 2> x_gradient) {
  if (y.size() == 0) return;
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).cap;
  for_row_blocks(engine, y.extent(0), y.extent(1), runtime::costs::kActivation,
                 [&](std::int64_t first, std::int64_t rows) {
                   kernel(factor, cap, rows_from(y, first), rows_from(y_gradient, first), rows_from(x_gradient, first),
                          rows, y.extent(1));
                 });
}

}  // namespace headlight::ops
