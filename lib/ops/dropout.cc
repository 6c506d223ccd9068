#include "headlight/dropout.h"

#include "kernels/kernels.h"
#include "ops/check.h"
#include "ops/dropout_rows.h"
#include "ops/in_place.h"
#include "ops/row_blocks.h"
#include "runtime/dropout.h"

namespace headlight {

void ops::dropout_rows(Engine& engine, View<const float, 2> x, View<float, 2> y, const Dropout& dropout,
                       View<const float, 2> residual, std::int64_t first_row) {
  const ops::Extent x_extent = ops::check_view("dropout", "x", x);
  const ops::Extent y_extent = ops::check_view("dropout", "y", y);
  ops::check_shape("dropout", "y", y.shape, x.shape, "the shape of x");
  ops::check_no_self_overlap("dropout", "y", y.shape, y.strides);
  ops::check_same_or_disjoint("dropout", "y", y, y_extent, "x", x, x_extent);
  if (residual) {
    const ops::Extent residual_extent = ops::check_view("dropout", "residual", residual);
    ops::check_shape("dropout", "residual", residual.shape, x.shape, "the shape of x");
    ops::check_same_or_disjoint("dropout", "y", y, y_extent, "residual", residual, residual_extent);
  }
  ops::check_probability("dropout", "probability", dropout.probability);
  if (x.size() == 0) return;

  // Ten rounds of two products for four words: the words take longer than the memory.
  constexpr double kNanosecondsPerElement = 0.4;
  const auto kernel = kernels::row_kernels(engine.isa()).dropout;
  const auto nanoseconds_per_row = kNanosecondsPerElement * static_cast<double>(x.extent(1));
  ops::for_row_blocks(engine, x.extent(0), nanoseconds_per_row, [&](std::int64_t first, std::int64_t rows) {
    kernel({.x = x.data + first * x.stride(0),
            .x_stride = x.stride(0),
            .residual = residual ? residual.data + first * residual.stride(0) : nullptr,
            .residual_stride = residual.stride(0),
            .y = y.data + first * y.stride(0),
            .y_stride = y.stride(0),
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
