#include "layers/initializer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "headlight/out_of_memory.h"
#include "runtime/random.h"

namespace headlight::layers {

namespace {

// In eight chains, since one would wait for each of its sums, and in this order on every machine. (768 rows of 768: one
// chain 0.78 s, eight 0.29.)
double dot(const double* x, const double* y, std::size_t count) noexcept {
  constexpr std::size_t kChains = 8;
  double sums[kChains] = {};
  std::size_t d = 0;
  for (; d + kChains <= count; d += kChains) {
    for (std::size_t chain = 0; chain < kChains; ++chain) sums[chain] += x[d + chain] * y[d + chain];
  }
  for (; d < count; ++d) sums[d % kChains] += x[d] * y[d];
  double sum = 0;
  for (const double of_chain : sums) sum += of_chain;
  return sum;
}

std::vector<double> rows_of(std::span<const float> values) try {
  return {values.begin(), values.end()};
} catch (const std::bad_alloc&) {
  throw OutOfMemory("orthogonal rows", values.size() * sizeof(double));
}

}  // namespace

void Initializer::uniform(std::span<float> values, float bound) noexcept {
  runtime::fill_uniform(values, -bound, bound, seed_, stream_++);
}

void Initializer::xavier(std::span<float> values, std::int64_t fan_in, std::int64_t fan_out) noexcept {
  uniform(values, static_cast<float>(std::sqrt(6.0 / static_cast<double>(fan_in + fan_out))));
}

// Gram–Schmidt, twice over, in float64: what is left of a row of independent numbers beside those before it.
void Initializer::orthogonal(std::span<float> values, std::int64_t columns, std::int64_t fan_out) {
  uniform(values, 1.0f);
  const auto width = static_cast<std::size_t>(columns);
  const double length = std::sqrt(2.0 * static_cast<double>(columns) / static_cast<double>(columns + fan_out));
  std::vector<double> rows = rows_of(values);
  for (std::size_t row = 0; row * width < rows.size(); ++row) {
    double* const x = rows.data() + row * width;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t before = row / width * width; before < row; ++before) {
        const double* const y = rows.data() + before * width;
        const double along = dot(x, y, width);
        for (std::size_t d = 0; d < width; ++d) x[d] -= along * y[d];
      }
      const double norm = std::sqrt(dot(x, x, width));
      for (std::size_t d = 0; d < width; ++d) x[d] /= norm;
    }
    for (std::size_t d = 0; d < width; ++d) values[row * width + d] = static_cast<float>(length * x[d]);
  }
}

void Initializer::constant(std::span<float> values, float value) noexcept {
  std::fill(values.begin(), values.end(), value);
  ++stream_;
}

}  // namespace headlight::layers
