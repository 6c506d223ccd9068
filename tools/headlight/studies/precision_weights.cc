// Weights as 8-bit integers, by what shares a scale.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tools/headlight/studies/deviation.h"
#include "tools/headlight/studies/precision.h"

namespace headlight::program {
namespace {

constexpr float kLargestInteger = 127.0f;
constexpr std::int64_t kOutliers = 1000;  // one in so many

// Above it weights are outliers: the largest magnitude that is none.
float outlier_bound(const WeightView& weight) {
  std::vector<float> magnitudes(weight.values.size());
  std::transform(weight.values.begin(), weight.values.end(), magnitudes.begin(),
                 [](float value) { return std::abs(value); });
  const auto largest = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size()) / kOutliers;
  std::nth_element(magnitudes.begin(), largest, magnitudes.end(), std::greater<>());
  return *largest;
}

// Of these, magnitudes above `bound` stay as they are.
void round_together(std::span<float> values, float bound) {
  float most = 0;
  for (const float value : values) most = std::abs(value) <= bound ? std::max(most, std::abs(value)) : most;
  if (most == 0) return;
  const float scale = most / kLargestInteger;
  for (float& value : values) value = std::abs(value) <= bound ? scale * std::nearbyint(value / scale) : value;
}

Tensor<float, 2> rounded_matrix(const WeightView& weight, SharedScale scale) {
  Tensor<float, 2> matrix({weight.shape[0], weight.shape[1]});
  std::copy(weight.values.begin(), weight.values.end(), matrix.begin());
  const auto columns = static_cast<std::size_t>(matrix.shape()[1]);
  const std::span<float> all(matrix.data(), weight.values.size());
  const float bound = scale == SharedScale::channel_but_outliers ? outlier_bound(weight) : INFINITY;
  if (scale == SharedScale::tensor) {
    round_together(all, bound);
  } else {
    for (std::size_t at = 0; at < all.size(); at += columns) round_together(all.subspan(at, columns), bound);
  }
  return matrix;
}

}  // namespace

const char* name(SharedScale scale) noexcept {
  switch (scale) {
    case SharedScale::tensor:
      return "tensor";
    case SharedScale::channel:
      return "channel";
    case SharedScale::channel_but_outliers:
      return "channel but outliers";
  }
  return "";
}

bool is_multiplied(const std::string& name, const WeightView& weight) noexcept {
  return (name.starts_with("layers.") || name.starts_with("blocks.")) && weight.shape.size() == 2 &&
         !weight.values.empty();
}

RoundedWeights rounded(const Weights& weights, SharedScale scale) {
  RoundedWeights result{.weights = weights};
  Deviation of_all;
  for (auto& [name, weight] : result.weights) {
    if (!is_multiplied(name, weight)) continue;
    const Tensor<float, 2>& matrix = result.matrices.emplace_back(rounded_matrix(weight, scale));
    const std::span<const float> values(matrix.data(), weight.values.size());
    Deviation of_matrix;
    of_matrix.add(values, weight.values);
    of_all.add(of_matrix);
    if (of_matrix.relative() >= result.worst_error) {
      result.worst_error = of_matrix.relative();
      result.worst = name;
    }
    weight.values = values;
  }
  result.error = of_all.relative();
  return result;
}

}  // namespace headlight::program
