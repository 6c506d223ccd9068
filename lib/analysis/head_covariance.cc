#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "analysis/linear_algebra.h"
#include "analysis/rows.h"
#include "headlight/analysis/similarity.h"
#include "headlight/gemm.h"
#include "ops/check.h"
#include "runtime/parallel.h"
#include "runtime/throwing_tasks.h"

namespace headlight::analysis {
namespace {

constexpr std::string_view kName = "HeadCovariance";
// Rows of a product: its upper half is taken in bands, so that little of the lower one is computed.
constexpr std::int64_t kBand = 48;
constexpr std::int64_t kColumns = 64;
// A float32 product over more rows than this loses digits that the float64 sums would keep.
constexpr std::int64_t kRows = 4096;

}  // namespace

HeadCovariance::HeadCovariance(std::int64_t heads, std::int64_t head_dim) : heads_(heads), head_dim_(head_dim) {
  if (heads < 1) ops::fail(kName, "heads is " + std::to_string(heads) + ", expected at least 1");
  if (head_dim < 1) ops::fail(kName, "head_dim is " + std::to_string(head_dim) + ", expected at least 1");
  const auto width = static_cast<std::size_t>(heads * head_dim);
  finite_.resize(static_cast<std::size_t>(heads), true);
  scales_.resize(static_cast<std::size_t>(heads));
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

void HeadCovariance::find_origin(const View<const float, 2>& outputs, const std::int64_t* rows, std::int64_t first,
                                 std::int64_t count) {
  std::vector<double> mean(sums_.size());
  for (std::int64_t n = 0; n < count; ++n) {
    const float* const row = outputs.data + (rows == nullptr ? first + n : rows[first + n]) * outputs.stride(0);
    for (std::size_t d = 0; d < mean.size(); ++d) mean[d] += static_cast<double>(row[d]);
  }
  origin_.resize(mean.size());
  for (std::size_t d = 0; d < mean.size(); ++d) origin_[d] = static_cast<float>(mean[d] / static_cast<double>(count));
}

// Most outputs are near 1 and stay as they are. Sums that were made with another scale are brought to the new one,
// which is exact.
void HeadCovariance::fit_scale(std::int64_t head, float largest) noexcept {
  constexpr int kNear = 16, kMost = 120, kTooLarge = 40;  // the products of 4096 rows of 2^40 stay below 2^127
  if (largest == 0 || !std::isfinite(largest)) return;
  std::optional<int>& scale = scales_[static_cast<std::size_t>(head)];
  const int exponent = std::clamp(std::ilogb(largest), -kMost, kMost);
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
void HeadCovariance::shift(Engine& engine, const View<const float, 2>& outputs, const std::int64_t* rows,
                           std::int64_t first_row, std::int64_t count, float* shifted) {
  const std::int64_t width = heads_ * head_dim_;
  std::vector<float> largest(static_cast<std::size_t>(heads_));
  std::vector<double> sums(sums_.size());
  runtime::parallel_for(engine, heads_, engine.threads(), [&](std::int64_t head, int) {
    float& of_head = largest[static_cast<std::size_t>(head)];
    const std::int64_t end = (head + 1) * head_dim_;
    for (std::int64_t first = head * head_dim_; first < end; first += kColumns) {
      const std::int64_t columns = std::min(kColumns, end - first);
      const float* const origin = origin_.data() + first;
      double sum[kColumns] = {};
      float magnitude[kColumns] = {};
      for (std::int64_t n = first_row; n < first_row + count; ++n) {
        const float* const from = outputs.data + (rows == nullptr ? n : rows[n]) * outputs.stride(0) + first;
        float* const to = shifted + (n - first_row) * width + first;
        for (std::int64_t d = 0; d < columns; ++d) to[d] = from[d] - origin[d];
        for (std::int64_t d = 0; d < columns; ++d) sum[d] += static_cast<double>(to[d]);
        for (std::int64_t d = 0; d < columns; ++d) {
          const float distance = std::abs(to[d]);
          magnitude[d] = distance > magnitude[d] ? distance : magnitude[d];
        }
      }
      std::copy_n(sum, columns, sums.data() + first);
      of_head = std::max(of_head, *std::max_element(magnitude, magnitude + columns));
    }
  });
  for (std::int64_t head = 0; head < heads_; ++head) {
    fit_scale(head, largest[static_cast<std::size_t>(head)]);
    const int scale = scales_[static_cast<std::size_t>(head)].value_or(0);
    for (std::int64_t d = head * head_dim_; d < (head + 1) * head_dim_; ++d) {
      sums_[static_cast<std::size_t>(d)] += std::ldexp(sums[static_cast<std::size_t>(d)], -scale);
    }
    if (scale == 0) continue;
    const float factor = std::ldexp(1.0f, -scale);
    for (std::int64_t n = 0; n < count; ++n) {
      float* const row = shifted + n * width + head * head_dim_;
      for (std::int64_t d = 0; d < head_dim_; ++d) row[d] *= factor;
    }
  }
}

void HeadCovariance::add_rows(Engine& engine, const View<const float, 2>& outputs, const std::int64_t* rows,
                              std::int64_t first_row, std::int64_t count) {
  const std::int64_t width = heads_ * head_dim_;
  const std::int64_t bands = (width + kBand - 1) / kBand;
  const std::int64_t lanes = std::min<std::int64_t>(engine.threads(), bands);
  runtime::ScratchLayout layout;
  const std::size_t shifted_at = layout.add<float>(count, width);
  const std::size_t products_at = layout.add<float>(lanes, kBand, width);
  const runtime::Scratch memory(engine, layout.bytes(), kName);
  auto* const shifted = reinterpret_cast<float*>(memory.data() + shifted_at);
  auto* const products = reinterpret_cast<float*>(memory.data() + products_at);
  if (origin_.empty()) find_origin(outputs, rows, first_row, count);
  shift(engine, outputs, rows, first_row, count, shifted);
  // A thread takes a whole band, the longest first: a product so small is one task to gemm().
  const auto add_band = [&](std::int64_t number, int lane) {
    const std::int64_t first = number * kBand, columns = std::min(kBand, width - first);
    const View<const float, 2> left(shifted + first, {count, columns}, {width, 1});
    const View<const float, 2> right(shifted + first, {count, width - first}, {width, 1});
    const View<float, 2> product(products + lane * kBand * width, {columns, width - first});
    gemm(engine, left, right, product, {.transpose_a = Transpose::yes});
    for (std::int64_t i = 0; i < columns; ++i) {
      double* const to = products_.data() + (first + i) * width + first;
      const float* const from = &product(i, 0);
      for (std::int64_t j = i; j < width - first; ++j) to[j] += static_cast<double>(from[j]);
    }
  };
  runtime::parallel_for_or_throw(engine, bands, static_cast<int>(lanes), add_band, runtime::HandOut::in_order);
  for (std::size_t d = 0; d < sums_.size(); ++d) {
    if (!std::isfinite(sums_[d])) finite_[d / static_cast<std::size_t>(head_dim_)] = false;
  }
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
    ops::fail(kName, "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(heads_ - 1));
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
  std::vector<double> matrix(static_cast<std::size_t>(width * width));
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
