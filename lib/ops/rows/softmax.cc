#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "ops/rows/buffers.h"
#include "ops/rows/in_place.h"
#include "runtime/costs.h"

namespace headlight {

void softmax(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y) {
  constexpr std::string_view kName = "softmax";
  if (ops::check_rows(kName, x, y).is_empty()) return;

  // Three sweeps in cache with one exponential an element.
  const auto kernel = kernels::row_kernels(engine.isa()).softmax;
  ops::for_row_buffers(engine, kName, runtime::costs::kSoftmax, {&x}, y,
                       [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t, std::int64_t rows) {
                         kernel(in[0], out, rows, x.extent(1));
                       });
}

void softmax_backward(Engine& engine, const TypedView<2>& y, const TypedView<2>& y_gradient,
                      const MutableTypedView<2>& x_gradient) {
  constexpr std::string_view kName = "softmax_backward";
  if (ops::check_row_gradients(kName, "y", "the shape of y", y, y_gradient, x_gradient).is_empty()) return;

  const auto kernel = kernels::row_gradient_kernels(engine.isa()).softmax;
  ops::for_row_buffers(engine, kName, runtime::costs::kSoftmaxBackward, {&y, &y_gradient}, x_gradient,
                       [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t, std::int64_t rows) {
                         kernel(in[0], in[1], out, rows, y.extent(1));
                       });
}

}  // namespace headlight
