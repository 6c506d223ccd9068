#include "headlight/gate.h"

#include <algorithm>

#include "kernels/kernels.h"
#include "ops/rows/activation_check.h"
#include "ops/rows/buffers.h"
#include "ops/rows/in_place.h"
#include "runtime/costs.h"

namespace headlight {
namespace {

// So many activations at a time stay in the first-level cache until they are multiplied: kernels of their own for every
// activation would be several times the code, and no faster to speak of.
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
  ops::check_gate(kName, a, b, y);
  ops::check_activation(kName, activation);
  if (a.size() == 0) return;

  const kernels::RowKernels& kernels = kernels::row_kernels(engine.isa());
  const auto compute = [&](const ops::InputRows<2>& in, ops::OutputRows out, std::int64_t, std::int64_t rows) {
    alignas(64) float activations[kTogether];
    for_parts(rows, a.extent(1), [&](std::int64_t row, std::int64_t some, std::int64_t column, std::int64_t columns) {
      const kernels::Rows<float> activated = {activations, columns};
      kernels.activate(activation, behind(in[0], row, column), activated, some, columns);
      kernels.multiply({activations, columns}, behind(in[1], row, column), behind(out, row, column), some, columns);
    });
  };
  ops::for_row_buffers<2>(engine, kName, runtime::costs::kGate, {a, b}, y, compute);
}

}  // namespace headlight
