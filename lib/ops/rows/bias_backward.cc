#include <array>

#include "headlight/gemm.h"
#include "ops/rows/checks.h"
#include "ops/rows/sums.h"
#include "runtime/costs.h"

namespace headlight {

void bias_backward(Engine& engine, View<const float, 2> c_gradient, std::span<float> bias_gradient) {
  constexpr std::string_view kName = "bias_backward";
  ops::check_bias_backward(c_gradient, bias_gradient);
  if (c_gradient.size() == 0) return;

  const auto kernel = kernels::row_gradient_kernels(engine.isa()).sum_rows;
  const std::int64_t columns = c_gradient.extent(1);
  ops::add_sums_over_rows(
      engine, kName, c_gradient.extent(0), columns, runtime::costs::kSumRows, std::array{bias_gradient.data()},
      [&](std::int64_t first, std::int64_t rows, const std::array<float*, 1>& partial, int) {
        kernel(c_gradient.data + first * c_gradient.stride(0), c_gradient.stride(0), rows, columns, partial[0]);
      });
}

}  // namespace headlight
