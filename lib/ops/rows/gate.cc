#include "headlight/gate.h"

#include <algorithm>

#include "kernels/kernels.h"
#include "ops/rows/activation_check.h"
#include "ops/rows/buffers.h"
#include "ops/rows/in_place.h"
#include "runtime/costs.h"

namespace headlight {
namespace {

// So many activations and their gradients at a time stay in the first-level cache until they are multiplied: kernels of
// their own for every activation would be several times the code, and no faster to speak of.
constexpr std::int64_t kTogether = 1024;

// f(first row, rows, first column, columns) for parts of at most kTogether numbers, in order.
template <class Function>
void for_parts(std::int64_t rows, std::int64_t columns, Function f) noexcept {
  const std::int64_t rows_together = std::max<std::int64_t>(1, kTogether / columns);
  for (std::int64_t row = 0; row < rows; row += rows_together) {
    for (std::int64_t column = 0; column < columns; column += kTogether) {
      f(row, std::min(rows_together, rows - row), column, std::min(kTogether, columns - column));
    }
  }
}

// Rows from there on.
template <class T>
kernels::Rows<T> behind(const kernels::Rows<T>& rows, std::int64_t row, std::int64_t column) noexcept {
  return {rows.row(row) + column, rows.stride};
}

}  // namespace

void gate(Engine& engine, Activation activation, const TypedView<2>& a, const TypedView<2>& b,
          const MutableTypedView<2>& y) {
  constexpr std::string_view kName = "gate";
  const ops::Extent y_extent = ops::check_gate(kName, a, b, y);
  ops::check_activation(kName, activation);
  if (y_extent.is_empty()) return;

  const auto kernel = kernels::row_kernels(engine.isa()).activate;
  const auto compute = [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t, std::int64_t rows) {
    kernel(activation, in[0], in[1], out, rows, a.extent(1));
  };
  ops::for_row_buffers(engine, kName, runtime::costs::kGate, {&a, &b}, y, compute);
}

void gate_backward(Engine& engine, Activation activation, const TypedView<2>& a, const TypedView<2>& b,
                   const TypedView<2>& y_gradient, const MutableTypedView<2>& a_gradient,
                   const MutableTypedView<2>& b_gradient) {
  constexpr std::string_view kName = "gate_backward";
  ops::check_gate_backward(kName, a, b, y_gradient, a_gradient, b_gradient);
  ops::check_activation(kName, activation);
  if (a.size() == 0) return;

  const kernels::RowKernels& kernels = kernels::row_kernels(engine.isa());
  const auto activate_backward = kernels::row_gradient_kernels(engine.isa()).activate;
  const std::int64_t all_columns = a.extent(1);
  const ops::RowBuffers buffers(engine, kName, all_columns, ops::any_narrow(a, b, y_gradient, a_gradient, b_gradient));
  // The gradients of a buffer's rows take the place of what they come from.
  const auto compute = [&](std::int64_t first, std::int64_t rows, int worker) {
    alignas(64) float activations[kTogether];
    alignas(64) float activation_gradients[kTogether];
    const kernels::Rows<const float> from = buffers.widened(a, first, rows, buffers.buffer(worker, 0));
    const kernels::Rows<const float> by = buffers.widened(b, first, rows, buffers.buffer(worker, 1));
    const kernels::Rows<const float> dy = buffers.widened(y_gradient, first, rows, buffers.buffer(worker, 2));
    const kernels::Rows<float> da = buffers.place_of(a_gradient, first, buffers.buffer(worker, 0));
    const kernels::Rows<float> db = buffers.place_of(b_gradient, first, buffers.buffer(worker, 1));
    for_parts(rows, all_columns, [&](std::int64_t row, std::int64_t some, std::int64_t column, std::int64_t columns) {
      const kernels::Rows<const float> part = behind(from, row, column), dy_part = behind(dy, row, column);
      kernels.activate(activation, part, {nullptr, 0}, {activations, columns}, some, columns);
      activate_backward(activation, part, dy_part, {activation_gradients, columns}, some, columns);
      kernels.multiply({activation_gradients, columns}, behind(by, row, column), behind(da, row, column), some,
                       columns);
      kernels.multiply({activations, columns}, dy_part, behind(db, row, column), some, columns);
    });
    buffers.round_into(a_gradient, da, first, rows);
    buffers.round_into(b_gradient, db, first, rows);
  };
  ops::for_row_blocks(engine, a.extent(0), all_columns, runtime::costs::kGateBackward,
                      [&](std::int64_t first, std::int64_t count, int worker) {
                        for (std::int64_t done = 0; done < count;) {
                          const std::int64_t rows = std::min(buffers.size().rows, count - done);
                          compute(first + done, rows, worker);
                          done += rows;
                        }
                      });
}

}  // namespace headlight
