#include <array>

#include "headlight/gemm.h"
#include "ops/check.h"
#include "ops/rows/buffers.h"
#include "ops/rows/sums.h"
#include "ops/typed_check.h"
#include "runtime/costs.h"

namespace headlight {
namespace {

constexpr std::string_view kBiasBackwardName = "bias_backward";

// Returns the addresses of c_gradient.
ops::Extent check(const TypedView<2>& c_gradient, std::span<float> bias_gradient) {
  ops::check_widened_type(kBiasBackwardName, "c_gradient", c_gradient.type);
  const ops::Extent extent = ops::check_view(kBiasBackwardName, "c_gradient", c_gradient);
  const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(bias_gradient.size())};
  const std::array<std::int64_t, 1> expected = {c_gradient.extent(1)};
  ops::check_shape(kBiasBackwardName, "bias_gradient", shape, expected, "[N]");
  ops::check_disjoint(kBiasBackwardName, "bias_gradient", ops::extent_of(bias_gradient), "c_gradient", extent);
  return extent;
}

}  // namespace

void bias_backward(Engine& engine, const TypedView<2>& c_gradient, std::span<float> bias_gradient) {
  if (check(c_gradient, bias_gradient).is_empty()) return;

  const std::int64_t columns = c_gradient.extent(1);
  const ops::RowBuffers buffers(engine, kBiasBackwardName, columns, ops::any_narrow(c_gradient));
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).sum_rows;
  ops::add_sums_over_rows(engine, kBiasBackwardName, c_gradient.extent(0), columns, runtime::costs::kSumRows,
                          std::array{bias_gradient.data()},
                          [&](std::int64_t first, std::int64_t rows, const std::array<float*, 1>& partial, int worker) {
                            buffers.compute(
                                worker, {&c_gradient}, {}, first, rows,
                                [&](const ops::InputRows& in, ops::OutputRows, std::int64_t, std::int64_t some) {
                                  kernel(in[0].data, in[0].stride, some, columns, partial[0]);
                                });
                          });
}

}  // namespace headlight
