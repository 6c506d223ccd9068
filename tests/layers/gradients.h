// Gradients of all parameters, one behind another.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/parameters.h"
#include "headlight/view.h"

namespace headlight::test {

inline std::vector<float> gradients_of(const std::vector<Parameter>& parameters) {
  std::vector<float> all;
  for (const Parameter& parameter : parameters) {
    all.insert(all.end(), parameter.gradient.begin(), parameter.gradient.end());
  }
  return all;
}

inline View<const float, 1> row_of(const std::vector<float>& numbers) {
  return {numbers.data(), {static_cast<std::int64_t>(numbers.size())}};
}

}  // namespace headlight::test
