#include "layers/initializer.h"

#include <algorithm>
#include <cmath>

#include "runtime/random.h"

namespace headlight::layers {

void Initializer::uniform(std::span<float> values, float bound) noexcept {
  runtime::fill_uniform(values, -bound, bound, seed_, stream_++);
}

void Initializer::xavier(std::span<float> values, std::int64_t fan_in, std::int64_t fan_out) noexcept {
  uniform(values, static_cast<float>(std::sqrt(6.0 / static_cast<double>(fan_in + fan_out))));
}

void Initializer::constant(std::span<float> values, float value) noexcept {
  std::fill(values.begin(), values.end(), value);
  ++stream_;
}

}  // namespace headlight::layers
