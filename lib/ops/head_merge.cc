#include "ops/head_merge.h"

#include "kernels/kernels.h"
#include "ops/row_blocks.h"

namespace headlight::ops {
namespace {

// `by` has one row for all, or one for each.
kernels::MergeArguments rows_from(std::int64_t first, std::int64_t rows, View<const float, 2> x,
                                  View<const float, 2> by, View<float, 2> y, std::int64_t heads) {
  const std::int64_t by_stride = by.extent(0) == 1 && x.extent(0) != 1 ? 0 : by.stride(0);
  return {.x = x.data + first * x.stride(0),
          .x_stride = x.stride(0),
          .by = by.data + first * by_stride,
          .by_stride = by_stride,
          .y = y.data + first * y.stride(0),
          .y_stride = y.stride(0),
          .rows = rows,
          .heads = heads,
          .head_dim = x.extent(1) / heads};
}

}  // namespace

void weigh_heads(Engine& engine, View<const float, 2> x, View<const float, 2> weights, View<float, 2> y) {
  if (x.size() == 0) return;
  constexpr double kNanosecondsPerElement = 0.05;
  const auto kernel = kernels::merge_kernels(engine.isa()).weigh_heads;
  const double nanoseconds_per_row = kNanosecondsPerElement * static_cast<double>(x.extent(1));
  for_row_blocks(engine, x.extent(0), nanoseconds_per_row, [&](std::int64_t first, std::int64_t rows) {
    kernel(rows_from(first, rows, x, weights, y, weights.extent(1)));
  });
}

void gate_heads(Engine& engine, View<const float, 2> x, View<const float, 2> gates, std::int64_t heads,
                View<float, 2> y) {
  if (x.size() == 0) return;
  const bool by_head = gates.extent(1) == heads;
  // Of these most is the exponential, one an element or one a head.
  const double nanoseconds_per_element = by_head ? 0.05 : 0.15;
  const kernels::MergeKernels& table = kernels::merge_kernels(engine.isa());
  const auto kernel = by_head ? table.gate_heads : table.gate_elements;
  const double nanoseconds_per_row = nanoseconds_per_element * static_cast<double>(x.extent(1));
  for_row_blocks(engine, x.extent(0), nanoseconds_per_row,
                 [&](std::int64_t first, std::int64_t rows) { kernel(rows_from(first, rows, x, gates, y, heads)); });
}

}  // namespace headlight::ops
