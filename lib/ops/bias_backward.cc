#include <array>

#include "headlight/gemm.h"
#include "ops/check.h"
#include "ops/row_sums.h"
#include "runtime/costs.h"

namespace headlight {

void bias_backward(Engine& engine, View<const float, 2> c_gradient, std::span<float> bias_gradient) {
  constexpr std::string_view kName = "bias_backward";
  const ops::Extent extent = ops::check_view(kName, "c_gradient", c_gradient);
  const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(bias_gradient.size())};
  const std::array<std::int64_t, 1> expected = {c_gradient.extent(1)};
  ops::check_shape(kName, "bias_gradient", shape, expected, "[N]");
  ops::check_disjoint(kName, "bias_gradient", ops::extent_of(bias_gradient), "c_gradient", extent);
  if (c_gradient.size() == 0) return;

  const auto kernel = kernels::row_gradient_kernels(engine.isa()).sum_rows;
  const std::int64_t columns = c_gradient.extent(1);
  ops::add_sums_over_rows(
      engine, kName, c_gradient.extent(0), columns, runtime::costs::kSumRows, std::array{bias_gradient.data()},
      [&](std::int64_t first, std::int64_t rows, const std::array<float*, 1>& partial) {
        kernel(c_gradient.data + first * c_gradient.stride(0), c_gradient.stride(0), rows, columns, partial[0]);
      });
}

}  // namespace headlight
