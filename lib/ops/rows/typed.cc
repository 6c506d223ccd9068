// Row-wise operations on tensors of any type that floats can be stored in: buffers of rows through the kernels of
// float32.
#include <array>
#include <string>

#include "headlight/typed_rows.h"
#include "kernels/kernels.h"
#include "ops/rows/blocks.h"
#include "ops/rows/buffers.h"
#include "ops/rows/checks.h"
#include "ops/rows/in_place.h"
#include "ops/rows/layer_norm_check.h"
#include "ops/rows/sums.h"
#include "runtime/costs.h"
#include "runtime/dropout.h"

namespace headlight {
namespace {

using FloatRows = kernels::Rows<float>;
template <std::size_t kInputs>
using InputRows = std::array<kernels::Rows<const float>, kInputs>;

// Of a tensor that is given.
template <class Pointer>
void check_type(std::string_view operation, std::string_view argument, const AnyTypedView<2, Pointer>& view) {
  if (view) ops::check_widened_type(operation, argument, view.type);
}

void check_types(std::string_view operation, const RowMatrices& rows) {
  check_type(operation, "x", rows.x);
  check_type(operation, "y", rows.y);
}

void check_types(std::string_view operation, std::string_view name, const RowGradients& rows) {
  check_type(operation, name, rows.from);
  check_type(operation, "y_gradient", rows.y_gradient);
  check_type(operation, "x_gradient", rows.x_gradient);
}

// compute(inputs, output, first row, rows) for all rows, a buffer at a time, on as many workers as the work is worth.
template <std::size_t kInputs, class Compute>
void for_buffers(Engine& engine, std::string_view operation, double nanoseconds_per_element,
                 const std::array<TypedView<2>, kInputs>& inputs, const MutableTypedView<2>& output, Compute compute) {
  const ops::RowBuffers buffers(engine, operation, output.extent(1));
  ops::for_row_blocks(engine, output.extent(0), output.extent(1), nanoseconds_per_element,
                      [&](std::int64_t first, std::int64_t count, int worker) {
                        buffers.compute(worker, inputs, output, first, count, compute);
                      });
}

const float* data_of(std::span<const float> vector) { return vector.empty() ? nullptr : vector.data(); }

}  // namespace

void softmax(Engine& engine, const RowMatrices& rows) {
  constexpr std::string_view kName = "softmax";
  check_types(kName, rows);
  ops::check_rows(kName, rows.x, rows.y);
  if (rows.x.size() == 0) return;
  const auto kernel = kernels::row_kernels(engine.isa()).softmax;
  const std::int64_t columns = rows.x.extent(1);
  for_buffers<1>(engine, kName, runtime::costs::kSoftmax, {rows.x}, rows.y,
                 [&](const InputRows<1>& in, FloatRows out, std::int64_t, std::int64_t count) {
                   kernel(in[0], out, count, columns);
                 });
}

void softmax_backward(Engine& engine, const RowGradients& rows) {
  constexpr std::string_view kName = "softmax_backward";
  check_types(kName, "y", rows);
  ops::check_row_gradients(kName, "y", "the shape of y", rows.from, rows.y_gradient, rows.x_gradient);
  if (rows.from.size() == 0) return;
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).softmax;
  const std::int64_t columns = rows.from.extent(1);
  for_buffers<2>(engine, kName, runtime::costs::kSoftmaxBackward, {rows.from, rows.y_gradient}, rows.x_gradient,
                 [&](const InputRows<2>& in, FloatRows out, std::int64_t, std::int64_t count) {
                   kernel(in[0], in[1], out, count, columns);
                 });
}

void activate(Engine& engine, Activation activation, const RowMatrices& rows) {
  constexpr std::string_view kName = "activate";
  check_types(kName, rows);
  ops::check_rows(kName, rows.x, rows.y);
  ops::check_activation(kName, activation);
  if (rows.x.size() == 0) return;
  const auto kernel = kernels::row_kernels(engine.isa()).activate;
  const std::int64_t columns = rows.x.extent(1);
  for_buffers<1>(engine, kName, runtime::costs::kActivation, {rows.x}, rows.y,
                 [&](const InputRows<1>& in, FloatRows out, std::int64_t, std::int64_t count) {
                   kernel(activation, in[0], out, count, columns);
                 });
}

void activate_backward(Engine& engine, Activation activation, const RowGradients& rows) {
  constexpr std::string_view kName = "activate_backward";
  check_types(kName, "x", rows);
  ops::check_row_gradients(kName, "x", "the shape of x", rows.from, rows.y_gradient, rows.x_gradient);
  ops::check_activation(kName, activation);
  if (rows.from.size() == 0) return;
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).activate;
  const std::int64_t columns = rows.from.extent(1);
  for_buffers<2>(engine, kName, runtime::costs::kActivationBackward, {rows.from, rows.y_gradient}, rows.x_gradient,
                 [&](const InputRows<2>& in, FloatRows out, std::int64_t, std::int64_t count) {
                   kernel(activation, in[0], in[1], out, count, columns);
                 });
}

void layer_norm(Engine& engine, const RowMatrices& rows, const TypedLayerNormOptions& options) {
  constexpr std::string_view kName = "layer_norm";
  check_types(kName, rows);
  check_type(kName, "residual", options.residual);
  ops::check_layer_norm(rows.x, rows.y, options);
  if (rows.x.size() == 0) return;
  const auto kernel = kernels::row_kernels(engine.isa()).layer_norm;
  for_buffers<2>(engine, kName, runtime::costs::kLayerNorm, {rows.x, options.residual}, rows.y,
                 [&](const InputRows<2>& in, FloatRows out, std::int64_t, std::int64_t count) {
                   kernel({.x = in[0],
                           .residual = in[1],
                           .y = out,
                           .rows = count,
                           .columns = rows.x.extent(1),
                           .weight = data_of(options.weight),
                           .bias = data_of(options.bias),
                           .epsilon = options.epsilon});
                 });
}

void layer_norm_backward(Engine& engine, const RowGradients& rows, const TypedLayerNormGradients& gradients,
                         const TypedLayerNormOptions& options) {
  constexpr std::string_view kName = "layer_norm_backward";
  check_types(kName, "x", rows);
  check_type(kName, "residual", gradients.residual);
  ops::check_layer_norm_backward<TypedView<2>, MutableTypedView<2>>(
      rows.from, rows.y_gradient, {rows.x_gradient, gradients.residual, gradients.weight, gradients.bias}, options);
  const TypedView<2>& x = rows.from;
  if (x.size() == 0) return;
  // Without a gradient of x it is added to nothing, and nobody has checked it.
  const TypedView<2> residual = rows.x_gradient ? gradients.residual : TypedView<2>();
  const std::int64_t columns = x.extent(1);
  const ops::RowBuffers buffers(engine, kName, columns);
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).layer_norm;
  const auto compute = [&](int worker, std::int64_t first, std::int64_t count, float* weight_sums, float* bias_sums) {
    buffers.compute<3>(worker, {x, rows.y_gradient, residual}, rows.x_gradient, first, count,
                       [&](const InputRows<3>& in, FloatRows out, std::int64_t, std::int64_t some) {
                         kernel({.x = in[0],
                                 .y_gradient = in[1],
                                 .residual = in[2],
                                 .x_gradient = out,
                                 .rows = some,
                                 .columns = columns,
                                 .weight = data_of(options.weight),
                                 .epsilon = options.epsilon,
                                 .weight_gradient = weight_sums,
                                 .bias_gradient = bias_sums});
                       });
  };
  if (gradients.weight.empty() && gradients.bias.empty()) {
    ops::for_row_blocks(
        engine, x.extent(0), columns, runtime::costs::kLayerNormBackward,
        [&](std::int64_t first, std::int64_t count, int worker) { compute(worker, first, count, nullptr, nullptr); });
    return;
  }
  const std::array<float*, 2> sums = {gradients.weight.empty() ? nullptr : gradients.weight.data(),
                                      gradients.bias.empty() ? nullptr : gradients.bias.data()};
  ops::add_sums_over_rows(engine, kName, x.extent(0), columns, runtime::costs::kLayerNormBackward, sums,
                          [&](std::int64_t first, std::int64_t count, const std::array<float*, 2>& partial,
                              int worker) { compute(worker, first, count, partial[0], partial[1]); });
}

void dropout(Engine& engine, const RowMatrices& rows, const Dropout& dropout, const TypedView<2>& residual) {
  constexpr std::string_view kName = "dropout";
  check_types(kName, rows);
  check_type(kName, "residual", residual);
  const ops::Extent y_extent = ops::check_rows(kName, rows.x, rows.y);
  ops::check_residual(kName, residual, rows.x, rows.y, y_extent);
  ops::check_probability(kName, "probability", dropout.probability);
  if (rows.x.size() == 0) return;
  const auto kernel = kernels::row_kernels(engine.isa()).dropout;
  for_buffers<2>(engine, kName, runtime::costs::kDropout, {rows.x, residual}, rows.y,
                 [&](const InputRows<2>& in, FloatRows out, std::int64_t first, std::int64_t count) {
                   kernel({.x = in[0],
                           .residual = in[1],
                           .y = out,
                           .rows = count,
                           .columns = rows.x.extent(1),
                           .first_row = first,
                           .threshold = runtime::dropout_threshold(dropout.probability),
                           .scale = runtime::dropout_scale(dropout.probability),
                           .seed = dropout.seed,
                           .stream = dropout.stream});
                 });
}

void bias_backward(Engine& engine, const TypedRowSums& sums) {
  constexpr std::string_view kName = "bias_backward";
  const TypedView<2>& rows = sums.c_gradient;
  check_type(kName, "c_gradient", rows);
  ops::check_bias_backward(rows, sums.bias_gradient);
  if (rows.size() == 0) return;
  const std::int64_t columns = rows.extent(1);
  const ops::RowBuffers buffers(engine, kName, columns);
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).sum_rows;
  ops::add_sums_over_rows(
      engine, kName, rows.extent(0), columns, runtime::costs::kSumRows, std::array{sums.bias_gradient.data()},
      [&](std::int64_t first, std::int64_t count, const std::array<float*, 1>& partial, int worker) {
        buffers.compute<1>(worker, {rows}, {}, first, count,
                           [&](const InputRows<1>& in, FloatRows, std::int64_t, std::int64_t some) {
                             kernel(in[0].data, in[0].stride, some, columns, partial[0]);
                           });
      });
}

std::size_t typed_rows_bytes(const Engine& engine, std::int64_t columns) noexcept {
  return ops::BufferSize(columns).bytes(engine.threads());
}

void reserve_typed_rows(Engine& engine, std::int64_t columns) {
  const runtime::Scratch memory(engine, typed_rows_bytes(engine, columns), "reserve_typed_rows");
}

}  // namespace headlight
