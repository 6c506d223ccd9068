#include "headlight/dropout.h"

#include "kernels/kernels.h"
#include "ops/rows/buffers.h"
#include "ops/rows/dropout_rows.h"
#include "ops/rows/in_place.h"
#include "runtime/costs.h"
#include "runtime/dropout.h"

namespace headlight {

void ops::dropout_rows(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y, const Dropout& dropout,
                       const TypedView<2>& residual, std::int64_t first_row) {
  constexpr std::string_view kName = "dropout";
  const Extent y_extent = check_rows(kName, x, y);
  check_residual(kName, residual, x, y, y_extent);
  check_probability(kName, "probability", dropout.probability);
  if (y_extent.is_empty()) return;

  const auto kernel = kernels::row_kernels(engine.isa()).dropout;
  for_row_buffers(engine, kName, runtime::costs::kDropout, {&x, &residual}, y,
                  [&](const InputRows& in, OutputRows out, std::int64_t first, std::int64_t rows) {
                    kernel({.x = in[0],
                            .residual = in[1],
                            .y = out,
                            .rows = rows,
                            .columns = x.extent(1),
                            .first_row = first_row + first,
                            .threshold = runtime::dropout_threshold(dropout.probability),
                            .scale = runtime::dropout_scale(dropout.probability),
                            .seed = dropout.seed,
                            .stream = dropout.stream});
                  });
}

void dropout(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y, const Dropout& dropout,
             const TypedView<2>& residual) {
  ops::dropout_rows(engine, x, y, dropout, residual, 0);
}

}  // namespace headlight
