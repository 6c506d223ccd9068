#include "ops/rows/scale.h"

#include "kernels/kernels.h"
#include "ops/rows/buffers.h"
#include "runtime/costs.h"

namespace headlight {

// As a dropout that keeps every number: its kernel takes any factor.
void ops::scale_rows(Engine& engine, View<const float, 2> x, float factor, View<const float, 2> added,
                     View<float, 2> y) {
  if (x.size() == 0) return;
  const auto kernel = kernels::row_kernels(engine.isa()).dropout;
  const TypedView<2> from = x, to_add = added;
  for_row_buffers(engine, "scale_rows", runtime::costs::kCopy, {&from, &to_add}, y,
                  [&](const InputRows& in, OutputRows out, std::int64_t, std::int64_t rows) {
                    kernel({.x = in[0],
                            .residual = in[1],
                            .y = out,
                            .rows = rows,
                            .columns = x.extent(1),
                            .first_row = 0,
                            .threshold = 0,
                            .scale = factor,
                            .seed = 0,
                            .stream = 0});
                  });
}

}  // namespace headlight
