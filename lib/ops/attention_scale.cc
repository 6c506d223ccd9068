#include "ops/attention_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headlight::ops {

AttentionScale scale_of(const AttentionOptions& options, std::int64_t head_dim) noexcept {
  constexpr double kLog2e = 1.44269504088896340736;
  const double scale = options.scale   ? static_cast<double>(*options.scale)
                       : head_dim == 0 ? 0.0
                                       : 1.0 / std::sqrt(static_cast<double>(head_dim));
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  const auto factor = static_cast<float>(std::min(std::abs(scale) * kLog2e, kLargest));
  if (factor < std::numeric_limits<float>::min()) return {static_cast<float>(kLog2e), 0.0f};
  return {factor, scale < 0 ? -1.0f : 1.0f};
}

float log_sum_exp_of(float maximum, float sum) noexcept {
  constexpr double kLog2 = 0.693147180559945309;
  return sum == 0.0f ? -std::numeric_limits<float>::infinity()
                     : static_cast<float>(static_cast<double>(maximum) * kLog2 + std::log(static_cast<double>(sum)));
}

}  // namespace headlight::ops
