// Numbers to compute with: the same in every run.
#pragma once

#include <cstdint>

#include "headlight/tensor.h"

namespace headlight::bench {

// Multiples of 1/1024 in [−1, 1), from a congruential generator (Numerical Recipes' constants).
template <int Rank>
void fill(Tensor<float, Rank>& tensor, std::uint32_t seed) {
  for (float& element : tensor) {
    seed = seed * 1664525u + 1013904223u;
    element = static_cast<float>(static_cast<int>(seed >> 21) - 1024) / 1024.0f;
  }
}

template <int Rank>
[[nodiscard]] Tensor<float, Rank> filled(const typename View<float, Rank>::Shape& shape, std::uint32_t seed) {
  Tensor<float, Rank> tensor(shape);
  fill(tensor, seed);
  return tensor;
}

}  // namespace headlight::bench
