// Seeded numbers that any language can make again: tests/golden/seeded.py holds the same few lines for NumPy.
//
// SplitMix64 (Steele, Lea & Flood 2014) is a counter put through a mixer, so the n-th number of a seed is a formula of
// seed and n alone, and every float below is made from it by exact arithmetic, or by one rounding that IEEE 754 fixes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headlight/tensor.h"

namespace headlight::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // [−1, 1), a multiple of 2⁻²³: the top 24 bits, exactly.
  float uniform() { return static_cast<float>(static_cast<std::int64_t>(next() >> 40) - (1 << 23)) * 0x1p-23f; }

  // Close to the standard normal, never beyond ±3.47: the sum of the word's four 16-bit pieces (mean 131070, deviation
  // 2¹⁶/√3).
  float normal() {
    const std::uint64_t word = next();
    const std::uint64_t sum = (word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) + (word >> 48);
    return static_cast<float>(static_cast<std::int64_t>(sum) - 131070) * (1.0f / 37837.227f);
  }

  // [first, last], both included.
  std::int64_t integer(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(last - first + 1));
  }

  // True once in `odds`.
  bool once_in(std::int64_t odds) { return integer(1, odds) == 1; }

  template <int Rank>
  Tensor<float, Rank> uniform_tensor(const typename View<float, Rank>::Shape& shape, float scale = 1.0f) {
    Tensor<float, Rank> tensor(shape);
    for (float& element : tensor) element = scale * uniform();
    return tensor;
  }

  template <int Rank>
  Tensor<float, Rank> normal_tensor(const typename View<float, Rank>::Shape& shape, float scale = 1.0f) {
    Tensor<float, Rank> tensor(shape);
    for (float& element : tensor) element = scale * normal();
    return tensor;
  }

 private:
  std::uint64_t state_;
};

// The same numbers in another type: float → double for the twins is exact.
template <class To, class From, int Rank>
Tensor<To, Rank> converted(const Tensor<From, Rank>& from) {
  Tensor<To, Rank> to(from.shape());
  std::transform(from.begin(), from.end(), to.begin(), [](From number) { return static_cast<To>(number); });
  return to;
}

}  // namespace headlight::test
