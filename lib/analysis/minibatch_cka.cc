#include <algorithm>
#include <cmath>
#include <string>

#include "analysis/memory.h"
#include "analysis/rows.h"
#include "analysis/shifted_rows.h"
#include "analysis/sizes.h"
#include "headlight/analysis/similarity.h"
#include "headlight/gemm.h"
#include "kernels/kernels.h"
#include "ops/check.h"
#include "ops/gemm/internal.h"
#include "runtime/parallel.h"
#include "runtime/throwing_tasks.h"
#include "simd/integers.h"

namespace headlight::analysis {
namespace {

constexpr std::string_view kMinibatchCkaName = "MinibatchCka";
constexpr std::int64_t kFewestRows = 4;

// How many rows count.
std::int64_t checked_rows(std::int64_t heads, std::span<const View<const float, 2>> outputs,
                          std::span<const std::int64_t> rows) {
  if (static_cast<std::int64_t>(outputs.size()) != heads) {
    ops::fail(kMinibatchCkaName,
              "there are " + std::to_string(outputs.size()) + " outputs, expected " + std::to_string(heads));
  }
  for (const View<const float, 2>& output : outputs) {
    ops::check_view(kMinibatchCkaName, "outputs", output);
    if (output.extent(0) != outputs[0].extent(0)) {
      ops::fail(kMinibatchCkaName, "outputs have " + std::to_string(outputs[0].extent(0)) + " and " +
                                       std::to_string(output.extent(0)) + " rows, expected one number");
    }
  }
  check_rows(kMinibatchCkaName, rows, outputs[0].extent(0));
  return rows.empty() ? outputs[0].extent(0) : static_cast<std::int64_t>(rows.size());
}

// Rows first, first + stride, … of what counts.
struct Group {
  const std::int64_t* rows;  // null: all
  std::int64_t first;
  std::int64_t stride;
  std::int64_t count;
};

// What was taken from the rows of a head.
struct Centre {
  double squares = 0;  // n ‖mean‖², in the scale of what is left
  int scale = 0;       // what is left was multiplied by 2⁻ˢ
};

// centred = 2⁻ˢ (x − about the mean of its rows), zeros behind its columns, for the sake of float32: HSIC₁ does not see
// the mean, and its terms, of four factors, keep their digits. `mean` has room for a row.
Centre centre(const kernels::RowKernels& kernels, const kernels::ChosenRows& rows, View<float, 2> centred,
              float* mean) noexcept {
  kernels.near_mean(rows, mean);
  double squares = 0;
  for (std::int64_t d = 0; d < rows.columns; ++d) {
    squares += static_cast<double>(mean[d]) * static_cast<double>(mean[d]) * static_cast<double>(rows.count);
  }
  const Shifted found = shift_rows(kernels, rows, mean, centred.data, centred.stride(0), nullptr);
  // Most outputs are near 1 and stay as they are.
  constexpr int kNear = 12, kMost = 120;
  int exponent = 0;
  if (found.largest > 0 && std::isfinite(found.largest)) {
    exponent = std::clamp(std::ilogb(found.largest) + found.scale, -kMost, kMost);
  }
  if (std::abs(exponent) <= kNear) exponent = 0;
  if (exponent == 0 && rows.columns == centred.extent(1)) return {squares, 0};
  const float factor = std::ldexp(1.0f, found.scale - exponent);
  for (std::int64_t i = 0; i < rows.count; ++i) {
    float* const to = &centred(i, 0);
    for (std::int64_t d = 0; d < rows.columns; ++d) to[d] *= factor;
    std::fill(to + rows.columns, to + centred.extent(1), 0.0f);
  }
  return {std::ldexp(squares, -2 * exponent), exponent};
}

// The kernel matrix [n, n] of the centred rows of a head, without its diagonal, centred so that the products of two
// such matrices add up to n (n − 3) HSIC₁ (Székely & Rizzo 2014, "U-centering"):
//   K̃_ij − (Σ_j K̃_ij + Σ_i K̃_ij) / (n − 2) + Σ_ij K̃_ij / ((n − 1)(n − 2)), and 0 on the diagonal.
// It is symmetric, and what lies above its diagonal says all. A head whose rows differ from their mean, of
// n ‖mean‖² = `squares`, by no more than float32 can tell is constant: all zeros. Of one that is not finite
// nothing is known. `shifts` has room for a row.
void centre_kernel(const kernels::RowKernels& kernels, std::int64_t n, double squares, float* kernel,
                   float* shifts) noexcept {
  const double trace = kernels.centre_kernel(kernel, n, shifts);
  if (std::isfinite(squares) && trace <= 1e-12 * squares) std::fill_n(kernel, n * (n - 1) / 2, 0.0f);
}

// The products of all pairs of heads are symmetric too: columns in bands, each with the rows down to its last one.
constexpr std::int64_t kBand = 48;

std::int64_t product_floats(Isa isa, std::int64_t heads, std::int64_t depth) noexcept {
  std::int64_t floats = 0;
  for (std::int64_t first = 0; first < heads; first += kBand) {
    const std::int64_t end = std::min(first + kBand, heads);
    floats = std::max(floats, ops::gemm_scratch_floats(isa, end, end - first, depth));
  }
  return floats;
}

// What a minibatch of n rows needs beside its inputs.
struct Workspace {
  Workspace(Isa isa, std::int64_t heads, std::int64_t n, std::int64_t width)
      : centred(layout.add<float>(heads, n, width)),
        matrices(layout.add<float>(heads, n, n)),
        mean(layout.add<float>(width)),
        centres(layout.add<Centre>(heads)),
        shifts(layout.add<float>(n)),
        product(layout.add<float>(product_floats(isa, heads, n * (n - 1) / 2))) {}
  runtime::ScratchLayout layout;
  runtime::ScratchPart<float> centred, matrices, mean;
  runtime::ScratchPart<Centre> centres;
  runtime::ScratchPart<float> shifts, product;
};

// products [H, H] = half the products of all pairs of centred kernel matrices, each in the scale that scales [H] say;
// what lies below its diagonal means nothing.
void multiply_kernels(Engine& engine, std::span<const View<const float, 2>> outputs, const Group& group,
                      std::int64_t width, View<float, 2> products, int* scales) {
  const std::int64_t n = group.count, heads = products.extent(0), pairs = n * (n - 1) / 2;
  const Workspace workspace(engine.isa(), heads, n, width);
  const runtime::Scratch memory(engine, workspace.layout.bytes(), kMinibatchCkaName);
  auto* const centred = workspace.centred.in(memory.data());
  auto* const matrices = workspace.matrices.in(memory.data());
  auto* const centres = workspace.centres.in(memory.data());
  auto* const mean = workspace.mean.in(memory.data());
  auto* const shifts = workspace.shifts.in(memory.data());
  auto* const product_memory = workspace.product.in(memory.data());
  const kernels::RowKernels& kernels = kernels::row_kernels(engine.isa());
  for (std::int64_t head = 0; head < heads; ++head) {
    const View<const float, 2>& x = outputs[static_cast<std::size_t>(head)];
    centres[head] = centre(kernels, {x.data, x.stride(0), group.rows, group.first, group.stride, n, x.extent(1)},
                           {centred + head * n * width, {n, width}}, mean);
    scales[head] = centres[head].scale;
  }
  const View<const float, 3> x(centred, {heads, n, width});
  gemm(engine, x, x, View<float, 3>(matrices, {heads, n, n}), {.transpose_b = Transpose::yes});
  for (std::int64_t head = 0; head < heads; ++head) {
    centre_kernel(kernels, n, centres[head].squares, matrices + head * n * n, shifts);
  }
  const auto of_heads = [&](std::int64_t first, std::int64_t end) {
    return View<const float, 2>(matrices + first * n * n, {end - first, pairs}, {n * n, 1});
  };
  for (std::int64_t first = 0; first < heads; first += kBand) {
    const std::int64_t end = std::min(first + kBand, heads);
    const View<float, 2> band(&products(0, first), {end, end - first}, products.strides);
    ops::run_gemm_block(engine.isa(),
                        ops::gemm_block(of_heads(0, end), of_heads(first, end), band, Transpose::no, Transpose::yes),
                        product_memory);
  }
}

}  // namespace

MinibatchCka::MinibatchCka(std::int64_t heads, std::int64_t minibatch) : heads_(heads), minibatch_(minibatch) {
  check_size(kMinibatchCkaName, "heads", heads, 1, kWidest);
  if (minibatch < kFewestRows)
    ops::fail(kMinibatchCkaName, "minibatch is " + std::to_string(minibatch) + ", expected at least 4");
  sums_ = make_vector<double>(kMinibatchCkaName, heads, heads);
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
  std::vector<float> all_products = make_vector<float>(kMinibatchCkaName, groups, heads_, heads_);
  const View<float, 3> products(all_products.data(), {groups, heads_, heads_});
  std::vector<int> scales = make_vector<int>(kMinibatchCkaName, groups, heads_);
  runtime::parallel_for_or_throw(engine, groups, engine.threads(), [&](std::int64_t number, int) {
    multiply_kernels(engine, outputs, group_of(number), width, {&products(number, 0, 0), {heads_, heads_}},
                     scales.data() + number * heads_);
  });
  for (std::int64_t number = 0; number < groups; ++number) {
    const auto n = static_cast<double>(group_of(number).count);
    const double share = 2 / (n * (n - 3));
    const int* const scale = scales.data() + number * heads_;
    for (std::int64_t i = 0; i < heads_; ++i) {
      for (std::int64_t j = i; j < heads_; ++j) {
        const double product = static_cast<double>(products(number, i, j)) * share;
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
    ops::fail(kMinibatchCkaName, "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(heads_ - 1));
  }
  if (rows_ == 0) return Undefined::too_few_rows;
  const auto sum = [&](std::int64_t i, std::int64_t j) { return sums_[static_cast<std::size_t>(i * heads_ + j)]; };
  const double both[] = {sum(a, a), sum(b, b)};
  if (!std::isfinite(both[0]) || !std::isfinite(both[1])) return Undefined::not_finite;
  if (both[0] <= 0 || both[1] <= 0) return Undefined::constant;
  return sum(std::min(a, b), std::max(a, b)) / std::sqrt(both[0]) / std::sqrt(both[1]);
}

}  // namespace headlight::analysis
