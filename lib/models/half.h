// 16-bit floating-point numbers, widened exactly.
#pragma once

#include <bit>
#include <cstdint>

namespace headlight::models {

// IEEE 754 binary16: sign, 5 exponent bits (bias 15), 10 fraction bits. NaN payloads are kept.
[[nodiscard]] constexpr float float16_to_float(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0) {  // zero or subnormal: fraction · 2⁻²⁴, exact in float32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t widened = exponent == 31 ? 255u : exponent + (127u - 15u);
  return std::bit_cast<float>(sign | (widened << 23) | (fraction << 13));
}

// bfloat16: the upper half of a float32.
[[nodiscard]] constexpr float bfloat16_to_float(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace headlight::models
