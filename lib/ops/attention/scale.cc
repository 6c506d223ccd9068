#include "ops/attention/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace headlight::ops {

double softmax_scale(const AttentionOptions& options, std::int64_t head_dim) noexcept {
  if (options.scale) return static_cast<double>(*options.scale);
  return head_dim == 0 ? 0.0 : 1.0 / std::sqrt(static_cast<double>(head_dim));
}

AttentionScale scale_of(const AttentionOptions& options, std::int64_t head_dim) noexcept {
  const double scale = softmax_scale(options, head_dim);
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  const auto factor = static_cast<float>(std::min(std::abs(scale) * std::numbers::log2e, kLargest));
  if (factor < std::numeric_limits<float>::min()) return {static_cast<float>(std::numbers::log2e), 0.0f};
  return {factor, scale < 0 ? -1.0f : 1.0f};
}

float log_sum_exp_of(float maximum, float sum) noexcept {
  return sum == 0.0f ? -std::numeric_limits<float>::infinity()
                     : static_cast<float>(static_cast<double>(maximum) * std::numbers::ln2 +
                                          std::log(static_cast<double>(sum)));
}

}  // namespace headlight::ops
