#include "headlight/activation.h"

#include "kernels/kernels.h"
#include "ops/rows/activation_check.h"
#include "ops/rows/buffers.h"
#include "ops/rows/in_place.h"
#include "runtime/costs.h"

namespace headlight {

void activate(Engine& engine, Activation activation, const TypedView<2>& x, const MutableTypedView<2>& y) {
  constexpr std::string_view kName = "activate";
  const ops::Extent y_extent = ops::check_rows(kName, x, y);
  ops::check_activation(kName, activation);
  if (y_extent.is_empty()) return;

  const auto kernel = kernels::row_kernels(engine.isa()).activate;
  ops::for_row_buffers(engine, kName, runtime::costs::kActivation, {&x}, y,
                       [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t, std::int64_t rows) {
                         kernel(activation, in[0], {nullptr, 0}, out, rows, x.extent(1));
                       });
}

void activate_backward(Engine& engine, Activation activation, const TypedView<2>& x, const TypedView<2>& y_gradient,
                       const MutableTypedView<2>& x_gradient) {
  constexpr std::string_view kName = "activate_backward";
  const ops::Extent x_extent = ops::check_row_gradients(kName, "x", "the shape of x", x, y_gradient, x_gradient);
  ops::check_activation(kName, activation);
  if (x_extent.is_empty()) return;

  const auto kernel = kernels::row_gradient_kernels(engine.isa()).activate;
  ops::for_row_buffers(engine, kName, runtime::costs::kActivationBackward, {&x, &y_gradient}, x_gradient,
                       [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t, std::int64_t rows) {
                         kernel(activation, in[0], in[1], out, rows, x.extent(1));
                       });
}

}  // namespace headlight
