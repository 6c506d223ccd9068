#include "headlight/analysis/head_parts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "headlight/gemm.h"
#include "ops/check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::analysis {
namespace {

constexpr std::string_view kHeadPartsName = "head_part_norms";

// Rows that are multiplied at a time: enough for a good product, so few that the parts stay in a cache.
constexpr std::int64_t kRowsOfPart = 256;
// Rows whose squares are summed side by side.
constexpr std::int64_t kTogether = 8;

template <class T>
View<const T, 2> block(const View<const T, 2>& x, std::int64_t row, std::int64_t rows, std::int64_t column,
                       std::int64_t columns) {
  return {&x(row, column), {rows, columns}, x.strides};
}

// norms [n] = ‖x_n‖ for rows first … first + count − 1, at most kTogether: each a chain of additions in the order of
// its numbers. They go side by side, because an addition waits for the one before it.
void norms_of_rows(const View<const float, 2>& x, std::int64_t first, std::int64_t count,
                   const View<float, 2>& norms) noexcept {
  double sums[kTogether] = {};
  const float* rows[kTogether];
  for (std::int64_t n = 0; n < kTogether; ++n) rows[n] = &x(first + std::min(n, count - 1), 0);
  for (std::int64_t e = 0; e < x.extent(1); ++e) {
    for (std::int64_t n = 0; n < kTogether; ++n) {
      const auto value = static_cast<double>(rows[n][e]);
      sums[n] += value * value;
    }
  }
  for (std::int64_t n = 0; n < count; ++n) norms(first + n, 0) = static_cast<float>(std::sqrt(sums[n]));
}

}  // namespace

void head_part_norms(Engine& engine, View<const float, 2> scaled_outputs, View<const float, 2> output_weight,
                     View<float, 2> norms) {
  ops::check_view(kHeadPartsName, "scaled_outputs", scaled_outputs);
  ops::check_view(kHeadPartsName, "output_weight", output_weight);
  ops::check_view(kHeadPartsName, "norms", norms);
  const std::int64_t columns = scaled_outputs.extent(1);
  const std::int64_t heads = norms.extent(1);
  const std::array<std::int64_t, 2> expected = {scaled_outputs.extent(0), -1};
  ops::check_shape(kHeadPartsName, "norms", norms.shape, expected, "[N, H]");
  if (heads < 1 || columns % heads != 0) {
    ops::fail(kHeadPartsName, "norms is for " + std::to_string(heads) + " heads, expected a divisor of " +
                                  std::to_string(columns) + ", the columns of scaled_outputs");
  }
  const std::int64_t head_dim = columns / heads, width = output_weight.extent(0);
  const bool shared = output_weight.extent(1) == head_dim;
  const std::array<std::int64_t, 2> whole = {-1, shared ? head_dim : columns};
  ops::check_shape(kHeadPartsName, "output_weight", output_weight.shape, whole, "[E, H·D] or [E, D]");
  Tensor<float, 2> part({std::min(kRowsOfPart, scaled_outputs.extent(0)), width});
  for (std::int64_t row = 0; row < scaled_outputs.extent(0); row += kRowsOfPart) {
    const std::int64_t rows = std::min(kRowsOfPart, scaled_outputs.extent(0) - row);
    for (std::int64_t head = 0; head < heads; ++head) {
      gemm(engine, block(scaled_outputs, row, rows, head * head_dim, head_dim),
           block(output_weight, 0, width, shared ? 0 : head * head_dim, head_dim),
           View<float, 2>(part.data(), {rows, width}), {.transpose_b = Transpose::yes});
      const View<float, 2> of_head(&norms(row, head), {rows, 1}, norms.strides);
      const std::int64_t tasks = divide_up(rows, kTogether);
      const int workers =
          runtime::workers_for(engine, tasks, runtime::costs::kSquares * static_cast<double>(rows * width));
      runtime::parallel_for(engine, tasks, workers, [&](std::int64_t task, int) {
        const std::int64_t first = task * kTogether;
        norms_of_rows(part, first, std::min(kTogether, rows - first), of_head);
      });
    }
  }
}

}  // namespace headlight::analysis
