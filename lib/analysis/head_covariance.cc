#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "analysis/linear_algebra.h"
#include "analysis/rows.h"
#include "headlight/analysis/similarity.h"
#include "headlight/gemm.h"
#include "ops/check.h"
#include "runtime/parallel.h"

namespace headlight::analysis {
namespace {

constexpr std::string_view kName = "HeadCovariance";
// Rows of a product: its upper half is taken in bands, so that little of the lower one is computed.
constexpr std::int64_t kBand = 96;
constexpr std::int64_t kColumns = 64;
// A float32 product over more rows than this loses digits that the float64 sums would keep.
constexpr std::int64_t kRows = 4096;

}  // namespace

HeadCovariance::HeadCovariance(std::int64_t heads, std::int64_t head_dim) : heads_(heads), head_dim_(head_dim) {
  if (heads < 1) ops::fail(kName, "heads is " + std::to_string(heads) + ", expected at least 1");
  if (head_dim < 1) ops::fail(kName, "head_dim is " + std::to_string(head_dim) + ", expected at least 1");
  const auto width = static_cast<std::size_t>(heads * head_dim);
  sums_.resize(width);
  products_.resize(width * width);
}

void HeadCovariance::add(Engine& engine, View<const float, 2> outputs, std::span<const std::int64_t> rows) {
  ops::check_view(kName, "outputs", outputs);
  const std::array<std::int64_t, 2> expected = {-1, heads_ * head_dim_};
  ops::check_shape(kName, "outputs", outputs.shape, expected, "[N, heads · head_dim]");
  check_rows(kName, rows, outputs.extent(0));
  const std::int64_t count = rows.empty() ? outputs.extent(0) : static_cast<std::int64_t>(rows.size());
  for (std::int64_t first = 0; first < count; first += kRows) {
    add_rows(engine, outputs, rows.empty() ? nullptr : rows.data(), first, std::min(kRows, count - first));
  }
}

void HeadCovariance::add_rows(Engine& engine, const View<const float, 2>& outputs, const std::int64_t* rows,
                              std::int64_t first_row, std::int64_t count) {
  const std::int64_t width = heads_ * head_dim_;
  const auto row = [&](std::int64_t n) {
    const std::int64_t number = rows == nullptr ? first_row + n : rows[first_row + n];
    return outputs.data + number * outputs.stride(0);
  };
  if (origin_.empty()) {
    std::vector<double> mean(static_cast<std::size_t>(width));
    for (std::int64_t n = 0; n < count; ++n) {
      for (std::int64_t d = 0; d < width; ++d) mean[static_cast<std::size_t>(d)] += static_cast<double>(row(n)[d]);
    }
    origin_.resize(mean.size());
    for (std::size_t d = 0; d < mean.size(); ++d) origin_[d] = static_cast<float>(mean[d] / static_cast<double>(count));
  }
  runtime::ScratchLayout layout;
  const std::size_t shifted_at = layout.add<float>(count, width);
  const std::size_t band_at = layout.add<float>(kBand, width);
  const runtime::Scratch memory(engine, layout.bytes());
  auto* const shifted = reinterpret_cast<float*>(memory.data() + shifted_at);
  auto* const band = reinterpret_cast<float*>(memory.data() + band_at);
  // A task has columns of its own.
  const std::int64_t blocks = (width + kColumns - 1) / kColumns;
  runtime::parallel_for(engine, blocks, engine.threads(), [&](std::int64_t block, int) {
    const std::int64_t first = block * kColumns, columns = std::min(kColumns, width - first);
    const float* const origin = origin_.data() + first;
    double sums[kColumns] = {};
    for (std::int64_t n = 0; n < count; ++n) {
      const float* const from = row(n) + first;
      float* const to = shifted + n * width + first;
      for (std::int64_t d = 0; d < columns; ++d) to[d] = from[d] - origin[d];
      for (std::int64_t d = 0; d < columns; ++d) sums[d] += static_cast<double>(to[d]);
    }
    for (std::int64_t d = 0; d < columns; ++d) sums_[static_cast<std::size_t>(first + d)] += sums[d];
  });
  for (std::int64_t first = 0; first < width; first += kBand) {
    const std::int64_t columns = std::min(kBand, width - first);
    const View<const float, 2> left(shifted + first, {count, columns}, {width, 1});
    const View<const float, 2> right(shifted + first, {count, width - first}, {width, 1});
    const View<float, 2> product(band, {columns, width - first});
    gemm(engine, left, right, product, {.transpose_a = Transpose::yes});
    for (std::int64_t i = 0; i < columns; ++i) {
      double* const to = products_.data() + (first + i) * width + first;
      const float* const from = band + i * (width - first);
      for (std::int64_t j = i; j < width - first; ++j) to[j] += static_cast<double>(from[j]);
    }
  }
  finite_ = finite_ && std::all_of(sums_.begin(), sums_.end(), [](double sum) { return std::isfinite(sum); });
  rows_ += count;
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
  double variance = 0, mean_square = 0;
  for (std::int64_t d = head * head_dim_; d < (head + 1) * head_dim_; ++d) {
    const auto at = static_cast<std::size_t>(d);
    const double mean = static_cast<double>(origin_[at]) + sums_[at] / static_cast<double>(rows_);
    variance += centred(d, d) / static_cast<double>(rows_);
    mean_square += mean * mean;
  }
  return variance <= 1e-12 * mean_square;
}

Undefined HeadCovariance::state() const noexcept {
  if (rows_ == 0) return Undefined::no_rows;
  if (rows_ < 2) return Undefined::too_few_rows;
  return finite_ ? Undefined::none : Undefined::not_finite;
}

Measure HeadCovariance::cka(std::int64_t a, std::int64_t b) const {
  for (const std::int64_t head : {a, b}) {
    if (head >= 0 && head < heads_) continue;
    ops::fail(kName, "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(heads_ - 1));
  }
  if (state() != Undefined::none) return state();
  if (is_constant(a) || is_constant(b)) return Undefined::constant;
  return squared_block(a, b) / std::sqrt(squared_block(a, a)) / std::sqrt(squared_block(b, b));
}

Measure HeadCovariance::effective_rank() const {
  if (state() != Undefined::none) return state();
  bool all_constant = true;
  for (std::int64_t head = 0; head < heads_; ++head) all_constant = all_constant && is_constant(head);
  if (all_constant) return Undefined::constant;
  const std::int64_t width = heads_ * head_dim_;
  std::vector<double> matrix(static_cast<std::size_t>(width * width));
  for (std::int64_t i = 0; i < width; ++i) {
    for (std::int64_t j = 0; j < width; ++j) matrix[static_cast<std::size_t>(i * width + j)] = centred(i, j);
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
