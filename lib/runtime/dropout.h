// The two numbers that dropout's probability comes down to, the same wherever it is applied.
#pragma once

#include <cstdint>

namespace headlight::runtime {

// A word below this drops its element: ⌊probability · 2³²⌋, for a probability in [0, 1).
constexpr std::uint32_t dropout_threshold(float probability) noexcept {
  return static_cast<std::uint32_t>(static_cast<double>(probability) * 0x1p32);
}

// What the kept elements are multiplied by.
constexpr float dropout_scale(float probability) noexcept {
  return static_cast<float>(1.0 / (1.0 - static_cast<double>(probability)));
}

}  // namespace headlight::runtime
