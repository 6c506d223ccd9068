// Numbers of 16 bits, for memory: they hold a float's value, rounded, and compute nothing.
#pragma once

#include <bit>
#include <cstdint>

namespace headlight {

// bfloat16: the upper half of a float32, a sign, 8 bits of exponent and 7 of fraction. From float it is the nearest
// number, of two the even one, subnormal numbers included; from 2¹²⁸ − 2¹¹⁹ on it is infinite. A NaN stays one, and
// becomes quiet.
struct BFloat16 {
  std::uint16_t bits;

  BFloat16() = default;
  // Rounds.
  constexpr explicit BFloat16(float value) noexcept : bits(rounded(std::bit_cast<std::uint32_t>(value))) {}

  // The number itself, exactly.
  [[nodiscard]] constexpr explicit operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  // The number of those bits.
  [[nodiscard]] static constexpr BFloat16 from_bits(std::uint16_t bits) noexcept {
    BFloat16 number(0.0f);
    number.bits = bits;
    return number;
  }

 private:
  // Half of the last bit that stays, less one where that bit is even, carries into it.
  [[nodiscard]] static constexpr std::uint16_t rounded(std::uint32_t wide) noexcept {
    constexpr std::uint32_t kInfinity = 0x7f800000;
    if ((wide & 0x7fffffff) > kInfinity) return static_cast<std::uint16_t>(wide >> 16 | 0x40);
    return static_cast<std::uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
};

// IEEE 754 binary16: a sign, 5 bits of exponent and 10 of fraction; the largest number is 65504, the smallest 2⁻²⁴.
// From float as above; from 65520 on it is infinite.
struct Float16 {
  std::uint16_t bits;

  Float16() = default;
  // Rounds.
  constexpr explicit Float16(float value) noexcept : bits(rounded(std::bit_cast<std::uint32_t>(value))) {}

  // The number itself, exactly.
  [[nodiscard]] constexpr explicit operator float() const noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
    const std::uint32_t magnitude = bits & 0x7fff;
    if (magnitude >= kSpecial) return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude >= kSmallestNormal) return std::bit_cast<float>(sign | ((magnitude << 13) + kBiases));
    // So many times 2⁻²⁴: exact.
    const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
  }
  // The number of those bits.
  [[nodiscard]] static constexpr Float16 from_bits(std::uint16_t bits) noexcept {
    Float16 number(0.0f);
    number.bits = bits;
    return number;
  }

 private:
  static constexpr std::uint32_t kSpecial = 0x7c00;           // infinity; above it NaN
  static constexpr std::uint32_t kSmallestNormal = 0x400;     // 2⁻¹⁴
  static constexpr std::uint32_t kBiases = (127 - 15) << 23;  // between the exponents of both types

  [[nodiscard]] static constexpr std::uint16_t rounded(std::uint32_t wide) noexcept {
    const std::uint32_t sign = wide >> 16 & 0x8000;
    const std::uint32_t magnitude = wide & 0x7fffffff;
    if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | kSpecial);  // 65520
    if (magnitude >= 0x38800000) {                                                    // 2⁻¹⁴
      const std::uint32_t half_less_one = 0xfff + (magnitude >> 13 & 1);
      return static_cast<std::uint16_t>(sign | (magnitude - kBiases + half_less_one) >> 13);
    }
    // One half and a number below 2⁻¹⁴ are added in multiples of 2⁻²⁴, as float rounds them.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5f)));
  }
};

}  // namespace headlight
