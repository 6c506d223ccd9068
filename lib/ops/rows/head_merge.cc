#include "ops/rows/head_merge.h"

#include "kernels/kernels.h"
#include "ops/rows/blocks.h"
#include "runtime/costs.h"

namespace headlight::ops {
namespace {

// `by` has one row for all, or one for each of x.
kernels::Rows<const float> weights_from(View<const float, 2> by, std::int64_t first, View<const float, 2> x) noexcept {
  const std::int64_t stride = by.extent(0) == 1 && x.extent(0) != 1 ? 0 : by.stride(0);
  return {by.data + first * stride, stride};
}

kernels::MergeArguments arguments_from(std::int64_t first, std::int64_t rows, View<const float, 2> x,
                                       View<const float, 2> by, View<float, 2> y, std::int64_t heads) {
  return {.x = rows_from(x, first),
          .by = weights_from(by, first, x),
          .y = rows_from(y, first),
          .rows = rows,
          .heads = heads,
          .head_dim = x.extent(1) / heads};
}

struct Backward {
  View<const float, 2> x;
  View<const float, 2> by;
  View<const float, 2> y_gradient;
  View<float, 2> x_gradient;
  View<float, 2> by_gradient;
  std::int64_t heads;

  [[nodiscard]] kernels::MergeBackwardArguments arguments_from(std::int64_t first, std::int64_t rows) const noexcept {
    return {.x = rows_from(x, first),
            .by = weights_from(by, first, x),
            .y_gradient = rows_from(y_gradient, first),
            .x_gradient = rows_from(x_gradient, first),
            .by_gradient = rows_from(by_gradient, first),
            .rows = rows,
            .heads = heads,
            .head_dim = x.extent(1) / heads};
  }

  void run(Engine& engine, void (*kernel)(const kernels::MergeBackwardArguments&) noexcept,
           double nanoseconds_per_element) const {
    if (x.size() == 0) return;
    for_row_blocks(engine, x.extent(0), x.extent(1), nanoseconds_per_element,
                   [&](std::int64_t first, std::int64_t rows) { kernel(arguments_from(first, rows)); });
  }
};

}  // namespace

void weigh_heads(Engine& engine, View<const float, 2> x, View<const float, 2> weights, View<float, 2> y) {
  if (x.size() == 0) return;
  const auto kernel = kernels::merge_kernels(engine.isa()).weigh_heads;
  for_row_blocks(engine, x.extent(0), x.extent(1), runtime::costs::kWeighHeads,
                 [&](std::int64_t first, std::int64_t rows) {
                   kernel(arguments_from(first, rows, x, weights, y, weights.extent(1)));
                 });
}

void scale_heads(Engine& engine, View<const float, 2> x, View<const float, 2> weights, View<float, 2> y) {
  const std::int64_t heads = weights.extent(1), head_dim = x.extent(1) / heads;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t column = head * head_dim;
    // A sum over one head.
    weigh_heads(engine, {x.data + column, {x.extent(0), head_dim}, x.strides},
                {weights.data + head, {weights.extent(0), 1}, weights.strides},
                {y.data + column, {y.extent(0), head_dim}, y.strides});
  }
}

void gate_heads(Engine& engine, View<const float, 2> x, View<const float, 2> gates, std::int64_t heads,
                View<float, 2> y) {
  if (x.size() == 0) return;
  const bool by_head = gates.extent(1) == heads;
  const double nanoseconds_per_element = by_head ? runtime::costs::kWeighHeads : runtime::costs::kGateElements;
  const kernels::MergeKernels& table = kernels::merge_kernels(engine.isa());
  const auto kernel = by_head ? table.gate_heads : table.gate_elements;
  for_row_blocks(engine, x.extent(0), x.extent(1), nanoseconds_per_element, [&](std::int64_t first, std::int64_t rows) {
    kernel(arguments_from(first, rows, x, gates, y, heads));
  });
}

void weigh_heads_backward(Engine& engine, View<const float, 2> x, View<const float, 2> weights,
                          View<const float, 2> y_gradient, View<float, 2> x_gradient, View<float, 2> weights_gradient) {
  Backward{x, weights, y_gradient, x_gradient, weights_gradient, weights.extent(1)}.run(
      engine, kernels::merge_kernels(engine.isa()).weigh_heads_backward, runtime::costs::kWeighHeadsBackward);
}

void gate_heads_backward(Engine& engine, View<const float, 2> x, View<const float, 2> gates, std::int64_t heads,
                         View<const float, 2> y_gradient, View<float, 2> x_gradient, View<float, 2> gates_gradient) {
  const bool by_head = gates.extent(1) == heads;
  const kernels::MergeKernels& table = kernels::merge_kernels(engine.isa());
  Backward{x, gates, y_gradient, x_gradient, gates_gradient, heads}.run(
      engine, by_head ? table.gate_heads_backward : table.gate_elements_backward,
      by_head ? runtime::costs::kWeighHeadsBackward : runtime::costs::kGateElementsBackward);
}

}  // namespace headlight::ops
