#include <algorithm>
#include <cmath>
#include <string>

#include "analysis/memory.h"
#include "analysis/rows.h"
#include "analysis/sizes.h"
#include "headlight/analysis/similarity.h"
#include "headlight/gemm.h"
#include "ops/check.h"
#include "runtime/parallel.h"
#include "runtime/throwing_tasks.h"
#include "simd/integers.h"

namespace headlight::analysis {
namespace {

constexpr std::string_view kName = "MinibatchCka";
constexpr std::int64_t kFewestRows = 4;

// How many rows count.
std::int64_t checked_rows(std::int64_t heads, std::span<const View<const float, 2>> outputs,
                          std::span<const std::int64_t> rows) {
  if (static_cast<std::int64_t>(outputs.size()) != heads) {
    ops::fail(kName, "there are " + std::to_string(outputs.size()) + " outputs, expected " + std::to_string(heads));
  }
  for (const View<const float, 2>& output : outputs) {
    ops::check_view(kName, "outputs", output);
    if (output.extent(0) != outputs[0].extent(0)) {
      ops::fail(kName, "outputs have " + std::to_string(outputs[0].extent(0)) + " and " +
                           std::to_string(output.extent(0)) + " rows, expected one number");
    }
  }
  check_rows(kName, rows, outputs[0].extent(0));
  return rows.empty() ? outputs[0].extent(0) : static_cast<std::int64_t>(rows.size());
}

// Rows first, first + step, … of what counts.
struct Group {
  const std::int64_t* rows;  // null: all
  std::int64_t first;
  std::int64_t step;
  std::int64_t count;

  [[nodiscard]] std::int64_t row(std::int64_t i) const noexcept {
    const std::int64_t at = first + i * step;
    return rows == nullptr ? at : rows[at];
  }
};

// What was taken from the rows of a head.
struct Centre {
  double squares = 0;  // n ‖mean‖², in the scale of what is left
  int scale = 0;       // what is left was multiplied by 2⁻ˢ
};

// centred = 2⁻ˢ (x − the mean of its rows), zeros behind its columns, for the sake of float32: HSIC₁ does not see the
// mean, and its terms, of four factors, keep their digits. `mean` has room for a row.
Centre centre(const View<const float, 2>& x, const Group& group, View<float, 2> centred, double* mean) noexcept {
  const std::int64_t columns = x.extent(1);
  std::fill_n(mean, columns, 0.0);
  for (std::int64_t i = 0; i < group.count; ++i) {
    const float* const row = x.data + group.row(i) * x.stride(0);
    for (std::int64_t d = 0; d < columns; ++d) mean[d] += static_cast<double>(row[d]);
  }
  double squares = 0;
  for (std::int64_t d = 0; d < columns; ++d) {
    mean[d] /= static_cast<double>(group.count);
    squares += mean[d] * mean[d] * static_cast<double>(group.count);
  }
  LargestMagnitude magnitude;
  for (std::int64_t i = 0; i < group.count; ++i) {
    const float* const row = x.data + group.row(i) * x.stride(0);
    float* const to = centred.data + i * centred.stride(0);
    for (std::int64_t d = 0; d < columns; ++d) to[d] = row[d] - static_cast<float>(mean[d]);
    magnitude.add(to, columns);
    std::fill(to + columns, to + centred.extent(1), 0.0f);
  }
  // Most outputs are near 1 and stay as they are.
  constexpr int kNear = 12, kMost = 120;
  const float largest = magnitude.value();
  const int exponent = largest > 0 && std::isfinite(largest) ? std::clamp(std::ilogb(largest), -kMost, kMost) : 0;
  if (std::abs(exponent) <= kNear) return {squares, 0};
  const float factor = std::ldexp(1.0f, -exponent);
  for (std::int64_t i = 0; i < group.count; ++i) {
    float* const to = centred.data + i * centred.stride(0);
    for (std::int64_t d = 0; d < columns; ++d) to[d] *= factor;
  }
  return {std::ldexp(squares, -2 * exponent), exponent};
}

// The kernel matrix [n, n] of the rows x [n, D], its diagonal left out, centred so that the products of two such
// matrices add up to n (n − 3) HSIC₁ (Székely & Rizzo 2014, "U-centering"):
//   K̃_ij − (Σ_j K̃_ij + Σ_i K̃_ij) / (n − 2) + Σ_ij K̃_ij / ((n − 1)(n − 2)), and 0 on the diagonal,
// with Σ_j K̃_ij = x_i · Σ_j x_j − K_ii. A head whose rows differ from their mean, of n ‖mean‖² = `squares`, by no more
// than float32 can tell is constant: all zeros. `sum` has room for a row of x, `shifts` for one of the kernel.
void centre_kernel(const View<const float, 2>& x, double squares, float* kernel, double* sum, float* shifts) noexcept {
  const std::int64_t n = x.extent(0), columns = x.extent(1);
  std::fill_n(sum, columns, 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t d = 0; d < columns; ++d) sum[d] += static_cast<double>(x(i, d));
  }
  double trace = 0, total = 0;
  const auto count = static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) {
    double of_row[2] = {};
    for (std::int64_t d = 0; d < columns; ++d) of_row[d & 1] += static_cast<double>(x(i, d)) * sum[d];
    const auto itself = static_cast<double>(kernel[i * n + i]);
    const double others = of_row[0] + of_row[1] - itself;
    shifts[i] = static_cast<float>(others / (count - 2));
    total += others;
    trace += itself;
  }
  if (trace <= 1e-12 * squares) {
    std::fill_n(kernel, n * n, 0.0f);
    return;
  }
  const double shift = total / ((count - 1) * (count - 2));
  for (std::int64_t i = 0; i < n; ++i) {
    float* const row = kernel + i * n;
    const float own = static_cast<float>(shift - static_cast<double>(shifts[i]));
    for (std::int64_t j = 0; j < n; ++j) row[j] += own - shifts[j];
    row[i] = 0;
  }
}

// What a minibatch of n rows needs beside its inputs.
struct Workspace {
  Workspace(std::int64_t heads, std::int64_t n, std::int64_t width)
      : centred(layout.add<float>(heads, n, width)),
        kernels(layout.add<float>(heads, n, n)),
        mean(layout.add<double>(width)),
        centres(layout.add<Centre>(heads)),
        shifts(layout.add<float>(n)) {}
  runtime::ScratchLayout layout;
  std::size_t centred, kernels, mean, centres, shifts;
};

// products [H, H] = the products of all pairs of centred kernel matrices, each in the scale that scales [H] say.
void multiply_kernels(Engine& engine, std::span<const View<const float, 2>> outputs, const Group& group,
                      std::int64_t width, View<float, 2> products, int* scales) {
  const std::int64_t n = group.count, heads = products.extent(0);
  const Workspace workspace(heads, n, width);
  const runtime::Scratch memory(engine, workspace.layout.bytes(), kName);
  auto* const centred = reinterpret_cast<float*>(memory.data() + workspace.centred);
  auto* const kernels = reinterpret_cast<float*>(memory.data() + workspace.kernels);
  auto* const centres = reinterpret_cast<Centre*>(memory.data() + workspace.centres);
  auto* const mean = reinterpret_cast<double*>(memory.data() + workspace.mean);
  auto* const shifts = reinterpret_cast<float*>(memory.data() + workspace.shifts);
  for (std::int64_t head = 0; head < heads; ++head) {
    centres[head] =
        centre(outputs[static_cast<std::size_t>(head)], group, {centred + head * n * width, {n, width}}, mean);
    scales[head] = centres[head].scale;
  }
  const View<const float, 3> x(centred, {heads, n, width});
  gemm(engine, x, x, View<float, 3>(kernels, {heads, n, n}), {.transpose_b = Transpose::yes});
  for (std::int64_t head = 0; head < heads; ++head) {
    centre_kernel({centred + head * n * width, {n, width}}, centres[head].squares, kernels + head * n * n, mean,
                  shifts);
  }
  const View<const float, 2> flat(kernels, {heads, n * n});
  gemm(engine, flat, flat, products, {.transpose_b = Transpose::yes});
}

}  // namespace

MinibatchCka::MinibatchCka(std::int64_t heads, std::int64_t minibatch) : heads_(heads), minibatch_(minibatch) {
  check_size(kName, "heads", heads, 1, kWidest);
  if (minibatch < kFewestRows) ops::fail(kName, "minibatch is " + std::to_string(minibatch) + ", expected at least 4");
  sums_ = make_vector<double>(kName, heads, heads);
}

void MinibatchCka::add(Engine& engine, std::span<const View<const float, 2>> outputs,
                       std::span<const std::int64_t> rows) {
  const std::int64_t count = checked_rows(heads_, outputs, rows);
  if (count < kFewestRows) return;
  std::int64_t width = 1;
  for (const View<const float, 2>& output : outputs) width = std::max(width, output.extent(1));

  // A thread takes a whole minibatch, and the minibatches are added in their order.
  const std::int64_t groups = std::clamp<std::int64_t>((count + minibatch_ / 2) / minibatch_, 1, count / kFewestRows);
  const auto group_of = [&](std::int64_t number) {
    return Group{rows.empty() ? nullptr : rows.data(), number, groups, divide_up(count - number, groups)};
  };
  std::vector<float> all_products = make_vector<float>(kName, groups, heads_, heads_);
  const View<float, 3> products(all_products.data(), {groups, heads_, heads_});
  std::vector<int> scales = make_vector<int>(kName, groups, heads_);
  runtime::parallel_for_or_throw(engine, groups, engine.threads(), [&](std::int64_t number, int) {
    multiply_kernels(engine, outputs, group_of(number), width, {&products(number, 0, 0), {heads_, heads_}},
                     scales.data() + number * heads_);
  });
  for (std::int64_t number = 0; number < groups; ++number) {
    const auto n = static_cast<double>(group_of(number).count);
    const int* const scale = scales.data() + number * heads_;
    for (std::int64_t i = 0; i < heads_; ++i) {
      for (std::int64_t j = 0; j < heads_; ++j) {
        const double product = static_cast<double>(products(number, i, j)) / (n * (n - 3));
        const int power = 2 * (scale[i] + scale[j]);
        sums_[static_cast<std::size_t>(i * heads_ + j)] += power == 0 ? product : std::ldexp(product, power);
      }
    }
  }
  rows_ += count;
}

Measure MinibatchCka::cka(std::int64_t a, std::int64_t b) const {
  for (const std::int64_t head : {a, b}) {
    if (head >= 0 && head < heads_) continue;
    ops::fail(kName, "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(heads_ - 1));
  }
  if (rows_ == 0) return Undefined::too_few_rows;
  const auto sum = [&](std::int64_t i, std::int64_t j) { return sums_[static_cast<std::size_t>(i * heads_ + j)]; };
  const double both[] = {sum(a, a), sum(b, b)};
  if (!std::isfinite(both[0]) || !std::isfinite(both[1])) return Undefined::not_finite;
  if (both[0] <= 0 || both[1] <= 0) return Undefined::constant;
  return sum(std::min(a, b), std::max(a, b)) / std::sqrt(both[0]) / std::sqrt(both[1]);
}

}  // namespace headlight::analysis
