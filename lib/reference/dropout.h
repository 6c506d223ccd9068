// Plain twin of dropout, with a Philox of its own.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "headlight/dropout.h"
#include "headlight/tensor.h"

namespace headlight::reference {

// Philox4x32-10 as its authors print it (Salmon et al. 2011): ten rounds, the key growing between them.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t seed) {
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    const auto high = [](std::uint64_t product) { return static_cast<std::uint32_t>(product >> 32); };
    const auto low = [](std::uint64_t product) { return static_cast<std::uint32_t>(product); };
    counter = {high(product1) ^ counter[1] ^ key0, low(product1), high(product0) ^ counter[3] ^ key1, low(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// What dropout multiplies element j of a row by: 0 or 1 / (1 − probability). `row` and `plane` are the counter's second
// and third words: ⌊i/2³²⌋ is the plane of a tensor's row i, b·Hq + h that of the softmax weights of a head.
inline double dropout_factor(const Dropout& dropout, std::int64_t j, std::int64_t row, std::uint32_t plane) {
  if (dropout.probability == 0) return 1;
  const auto probability = static_cast<double>(dropout.probability);
  const std::array<std::uint32_t, 4> words =
      philox({static_cast<std::uint32_t>(j / 4), static_cast<std::uint32_t>(row), plane, dropout.stream}, dropout.seed);
  return words[static_cast<std::size_t>(j % 4)] >= std::floor(probability * 0x1p32) ? 1 / (1 - probability) : 0;
}

// y_ij = x_ij / (1 − probability) where kept, else 0, + residual_ij where given; x, y, residual [N, E].
template <class Scalar>
void dropout(View<const Scalar, 2> x, View<Scalar, 2> y, const Dropout& dropout, View<const Scalar, 2> residual = {}) {
  for (std::int64_t i = 0; i < x.extent(0); ++i) {
    for (std::int64_t j = 0; j < x.extent(1); ++j) {
      const double factor = dropout_factor(dropout, j, i, static_cast<std::uint32_t>(i >> 32));
      y(i, j) = (factor == 0 ? 0 : x(i, j) * static_cast<Scalar>(factor)) + (residual ? residual(i, j) : 0);
    }
  }
}

}  // namespace headlight::reference
