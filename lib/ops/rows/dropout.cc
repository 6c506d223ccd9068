#include "headlight/dropout.h"

#include "kernels/kernels.h"
#include "ops/check.h"
#include "ops/rows/blocks.h"
#include "ops/rows/dropout_rows.h"
#include "ops/rows/in_place.h"
#include "runtime/costs.h"
#include "runtime/dropout.h"

namespace headlight {

void ops::dropout_rows(Engine& engine, View<const float, 2> x, View<float, 2> y, const Dropout& dropout,
                       View<const float, 2> residual, std::int64_t first_row) {
  const ops::Extent y_extent = ops::check_rows("dropout", x, y);
  ops::check_residual("dropout", residual, x, y, y_extent);
  ops::check_probability("dropout", "probability", dropout.probability);
  if (x.size() == 0) return;

  const auto kernel = kernels::row_kernels(engine.isa()).dropout;
  ops::for_row_blocks(engine, x.extent(0), x.extent(1), runtime::costs::kDropout,
                      [&](std::int64_t first, std::int64_t rows) {
                        kernel({.x = ops::rows_from(x, first),
                                .residual = ops::rows_from(residual, first),
                                .y = ops::rows_from(y, first),
                                .rows = rows,
                                .columns = x.extent(1),
                                .first_row = first_row + first,
                                .threshold = runtime::dropout_threshold(dropout.probability),
                                .scale = runtime::dropout_scale(dropout.probability),
                                .seed = dropout.seed,
                                .stream = dropout.stream});
                      });
}

void dropout(Engine& engine, View<const float, 2> x, View<float, 2> y, const Dropout& dropout,
             View<const float, 2> residual) {
  ops::dropout_rows(engine, x, y, dropout, residual, 0);
}

}  // namespace headlight
