#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "analysis/linear_algebra.h"
#include "analysis/memory.h"
#include "analysis/rows.h"
#include "analysis/shifted_rows.h"
#include "analysis/sizes.h"
#include "headlight/analysis/similarity.h"
#include "kernels/kernels.h"
#include "ops/check.h"
#include "ops/gemm/internal.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::analysis {
namespace {

constexpr std::string_view kHeadCovarianceName = "HeadCovariance";
// Rows of a product: its upper half is taken in bands, so that little of the lower one is computed.
constexpr std::int64_t kBand = 48;
// A float32 product over more rows than this loses digits that the float64 sums would keep.
constexpr std::int64_t kRowsAtOnce = 4096;

constexpr std::int64_t bands_of(std::int64_t width) noexcept { return divide_up(width, kBand); }

// Floats of scratch memory for the product of any band, over runs of `count` rows.
std::int64_t product_floats(Isa isa, std::int64_t width, std::int64_t count) noexcept {
  std::int64_t floats = 0;
  for (const std::int64_t rows : {std::min(kRowsAtOnce, count), count % kRowsAtOnce}) {
    for (std::int64_t first = 0; first < width; first += kBand) {
      const std::int64_t columns = std::min(kBand, width - first);
      floats = std::max(floats, ops::gemm_scratch_floats(isa, columns, width - first, rows, Transpose::yes));
    }
  }
  return floats;
}

// What a run of so many rows needs beside them.
struct Workspace {
  Workspace(std::int64_t rows, std::int64_t heads, std::int64_t width, std::int64_t workers, std::int64_t floats)
      : gemm_floats(round_up(floats, 32)),
        shifted(layout.add<float>(rows, width)),
        products(layout.add<float>(workers, kBand, width)),
        gemm(layout.add<float>(workers, gemm_floats)),
        sums(layout.add<double>(width)),
        found(layout.add<Shifted>(heads)) {}
  runtime::ScratchLayout layout;
  std::int64_t gemm_floats;  // of a worker, in whole cache lines
  runtime::ScratchPart<float> shifted, products, gemm;
  runtime::ScratchPart<double> sums;
  runtime::ScratchPart<Shifted> found;
};

}  // namespace

// Rows first … first + count − 1 of what counts.
struct HeadCovariance::Rows {
  const View<const float, 2>& outputs;
  const std::int64_t* chosen;  // null: all
  std::int64_t first;
  std::int64_t count;

  // Their columns [column, column + columns).
  [[nodiscard]] kernels::ChosenRows columns(std::int64_t column, std::int64_t columns) const noexcept {
    return {outputs.data + column, outputs.stride(0), chosen, first, 1, count, columns};
  }
};

// The Workspace of a call.
struct HeadCovariance::Room {
  int workers;
  float* shifted;
  float* products;
  float* gemm;
  std::int64_t gemm_floats;
  double* sums;
  Shifted* found;  // of each head
};

HeadCovariance::HeadCovariance(std::int64_t heads, std::int64_t head_dim) : heads_(heads), head_dim_(head_dim) {
  check_size(kHeadCovarianceName, "heads", heads, 1, kWidest);
  check_size(kHeadCovarianceName, "head_dim", head_dim, 1, kWidest);
  const std::int64_t width = heads * head_dim;
  check_size(kHeadCovarianceName, "heads · head_dim", width, 1, kWidest);
  finite_ = make_vector<bool>(kHeadCovarianceName, heads);
  finite_.flip();
  scales_ = make_vector<std::optional<int>>(kHeadCovarianceName, heads);
  sums_ = make_vector<double>(kHeadCovarianceName, width);
  products_ = make_vector<double>(kHeadCovarianceName, width, width);
}

void HeadCovariance::add(Engine& engine, View<const float, 2> outputs, std::span<const std::int64_t> rows) {
  ops::check_view(kHeadCovarianceName, "outputs", outputs);
  const std::array<std::int64_t, 2> expected = {-1, heads_ * head_dim_};
  ops::check_shape(kHeadCovarianceName, "outputs", outputs.shape, expected, "[N, heads · head_dim]");
  check_rows(kHeadCovarianceName, rows, outputs.extent(0));
  const std::int64_t count = rows.empty() ? outputs.extent(0) : static_cast<std::int64_t>(rows.size());
  if (count == 0) return;
  const std::int64_t most = std::min(kRowsAtOnce, count), width = heads_ * head_dim_;
  const int workers = static_cast<int>(std::min<std::int64_t>(runtime::workers_from_here(engine), bands_of(width)));
  const Workspace workspace(most, heads_, width, workers, product_floats(engine.isa(), width, count));
  const runtime::Scratch memory(engine, workspace.layout.bytes(), kHeadCovarianceName);
  const Room room = {.workers = workers,
                     .shifted = workspace.shifted.in(memory.data()),
                     .products = workspace.products.in(memory.data()),
                     .gemm = workspace.gemm.in(memory.data()),
                     .gemm_floats = workspace.gemm_floats,
                     .sums = workspace.sums.in(memory.data()),
                     .found = workspace.found.in(memory.data())};
  const std::int64_t* const chosen = rows.empty() ? nullptr : rows.data();
  if (origin_.empty()) {
    origin_ = make_vector<float>(kHeadCovarianceName, sums_.size());
    kernels::row_kernels(engine.isa()).near_mean(Rows{outputs, chosen, 0, most}.columns(0, width), origin_.data());
  }
  // From here on there is all the memory that it takes: all rows count.
  for (std::int64_t first = 0; first < count; first += kRowsAtOnce) {
    add_rows(engine, {outputs, chosen, first, std::min(kRowsAtOnce, count - first)}, room);
  }
}

// Most outputs are near 1 and stay as they are. Sums that were made with another scale are brought to the new one,
// which is exact. The numbers of these rows are at most largest · 2^power.
void HeadCovariance::fit_scale(std::int64_t head, float largest, int power) noexcept {
  constexpr int kNear = 16, kMostExponent = 120, kTooLarge = 40;  // the products of 4096 rows of 2^40 stay below 2^127
  if (largest == 0 || !std::isfinite(largest)) return;
  std::optional<int>& scale = scales_[static_cast<std::size_t>(head)];
  const int exponent = std::clamp(std::ilogb(largest) + power, -kMostExponent, kMostExponent);
  if (scale && exponent <= *scale + kTooLarge) return;
  const int before = scale.value_or(0);
  scale = std::abs(exponent) <= kNear ? 0 : exponent;
  if (*scale == before) return;
  const std::int64_t width = heads_ * head_dim_;
  const auto powers = [&](std::int64_t column) { return column / head_dim_ == head ? before - *scale : 0; };
  for (std::int64_t i = 0; i < width; ++i) {
    double& sum = sums_[static_cast<std::size_t>(i)];
    sum = std::ldexp(sum, powers(i));
    for (std::int64_t j = i; j < width; ++j) {
      double& product = products_[static_cast<std::size_t>(i * width + j)];
      product = std::ldexp(product, powers(i) + powers(j));
    }
  }
}

// shifted [count, E] = 2⁻ˢ (x − origin), and their sums. The largest |x − origin| of each head decides its s.
void HeadCovariance::shift(Engine& engine, const Rows& rows, const Room& room) noexcept {
  const std::int64_t width = heads_ * head_dim_;
  const kernels::RowKernels& kernels = kernels::row_kernels(engine.isa());
  runtime::parallel_for(engine, heads_, engine.threads(), [&](std::int64_t head, int) {
    const std::int64_t first = head * head_dim_;
    room.found[head] = shift_rows(kernels, rows.columns(first, head_dim_), origin_.data() + first, room.shifted + first,
                                  width, room.sums + first);
  });
  for (std::int64_t head = 0; head < heads_; ++head) {
    const Shifted found = room.found[head];
    fit_scale(head, found.largest, found.scale);
    // What is left to be scaled by.
    const int power = found.scale - scales_[static_cast<std::size_t>(head)].value_or(0);
    for (std::int64_t d = head * head_dim_; d < (head + 1) * head_dim_; ++d) {
      sums_[static_cast<std::size_t>(d)] += std::ldexp(room.sums[d], power);
    }
    if (power == 0) continue;
    const float factor = std::ldexp(1.0f, power);
    for (std::int64_t n = 0; n < rows.count; ++n) {
      float* const row = room.shifted + n * width + head * head_dim_;
      for (std::int64_t d = 0; d < head_dim_; ++d) row[d] *= factor;
    }
  }
}

void HeadCovariance::add_rows(Engine& engine, const Rows& rows, const Room& room) noexcept {
  const std::int64_t width = heads_ * head_dim_;
  shift(engine, rows, room);
  // A thread takes a whole band, the longest first.
  auto add_band = [&](std::int64_t number, int worker) {
    const std::int64_t first = number * kBand, columns = std::min(kBand, width - first);
    const View<const float, 2> left(room.shifted + first, {rows.count, columns}, {width, 1});
    const View<const float, 2> right(room.shifted + first, {rows.count, width - first}, {width, 1});
    const View<float, 2> product(room.products + worker * kBand * width, {columns, width - first});
    ops::run_gemm_block(engine.isa(), ops::gemm_block(left, right, product, Transpose::yes),
                        room.gemm + worker * room.gemm_floats);
    for (std::int64_t i = 0; i < columns; ++i) {
      double* const to = products_.data() + (first + i) * width + first;
      const float* const from = &product(i, 0);
      for (std::int64_t j = i; j < width - first; ++j) to[j] += static_cast<double>(from[j]);
    }
  };
  runtime::parallel_for(engine, bands_of(width), room.workers, add_band, runtime::HandOut::in_order);
  for (std::size_t d = 0; d < sums_.size(); ++d) {
    if (!std::isfinite(sums_[d])) finite_[d / static_cast<std::size_t>(head_dim_)] = false;
  }
  rows_ += rows.count;
}

double HeadCovariance::centred(std::int64_t row, std::int64_t column) const noexcept {
  const std::int64_t width = heads_ * head_dim_;
  const auto i = static_cast<std::size_t>(std::min(row, column)), j = static_cast<std::size_t>(std::max(row, column));
  return products_[i * static_cast<std::size_t>(width) + j] - sums_[i] * sums_[j] / static_cast<double>(rows_);
}

double HeadCovariance::squared_block(std::int64_t a, std::int64_t b) const noexcept {
  double squares = 0;
  for (std::int64_t i = a * head_dim_; i < (a + 1) * head_dim_; ++i) {
    for (std::int64_t j = b * head_dim_; j < (b + 1) * head_dim_; ++j) squares += centred(i, j) * centred(i, j);
  }
  return squares;
}

// The rows of a constant head differ from its mean by the rounding of float32 at most.
bool HeadCovariance::is_constant(std::int64_t head) const noexcept {
  const int scale = scales_[static_cast<std::size_t>(head)].value_or(0);
  double variance = 0, mean_square = 0;
  for (std::int64_t d = head * head_dim_; d < (head + 1) * head_dim_; ++d) {
    const auto at = static_cast<std::size_t>(d);
    const double origin = std::ldexp(static_cast<double>(origin_[at]), -scale);
    const double mean = origin + sums_[at] / static_cast<double>(rows_);
    variance += centred(d, d) / static_cast<double>(rows_);
    mean_square += mean * mean;
  }
  return variance <= 1e-12 * mean_square;
}

Undefined HeadCovariance::state(std::int64_t head) const noexcept {
  if (rows_ == 0) return Undefined::no_rows;
  if (rows_ < 2) return Undefined::too_few_rows;
  return finite_[static_cast<std::size_t>(head)] ? Undefined::none : Undefined::not_finite;
}

Measure HeadCovariance::cka(std::int64_t a, std::int64_t b) const {
  for (const std::int64_t head : {a, b}) {
    if (head >= 0 && head < heads_) continue;
    ops::fail(kHeadCovarianceName, "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(heads_ - 1));
  }
  for (const std::int64_t head : {a, b}) {
    if (state(head) != Undefined::none) return state(head);
  }
  if (is_constant(a) || is_constant(b)) return Undefined::constant;
  return squared_block(a, b) / std::sqrt(squared_block(a, a)) / std::sqrt(squared_block(b, b));
}

Measure HeadCovariance::effective_rank() const {
  bool all_constant = true;
  int largest = std::numeric_limits<int>::min();
  for (std::int64_t head = 0; head < heads_; ++head) {
    if (state(head) != Undefined::none) return state(head);
    all_constant = all_constant && is_constant(head);
    largest = std::max(largest, scales_[static_cast<std::size_t>(head)].value_or(largest));
  }
  if (all_constant) return Undefined::constant;
  // All heads in the scale of the largest.
  const std::int64_t width = heads_ * head_dim_;
  const auto power = [&](std::int64_t column) {
    return scales_[static_cast<std::size_t>(column / head_dim_)].value_or(largest) - largest;
  };
  std::vector<double> matrix = make_vector<double>(kHeadCovarianceName, width, width);
  for (std::int64_t i = 0; i < width; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      matrix[static_cast<std::size_t>(i * width + j)] = std::ldexp(centred(i, j), power(i) + power(j));
    }
  }
  std::vector<double> values = symmetric_eigenvalues(matrix, width);
  // N centred rows have at most N − 1 directions; what float32 products leave in others is rounding.
  std::sort(values.begin(), values.end(), std::greater<>());
  values.resize(static_cast<std::size_t>(std::min(width, rows_ - 1)));
  const double nothing = 0x1p-22 * values.front();
  double sum = 0;
  for (double& value : values) {
    value = value > nothing ? std::sqrt(value) : 0;
    sum += value;
  }
  double entropy = 0;
  for (const double value : values) {
    if (value > 0) entropy -= value / sum * std::log(value / sum);
  }
  return std::exp(entropy);
}

}  // namespace headlight::analysis
