// What the numbers of a matrix or of a tensor are stored as. Sums are float32 whatever it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headlight/export.h"

namespace headlight {

enum class NumberType : std::uint8_t {
  float32,   // IEEE 754 binary32
  bfloat16,  // its upper half: a sign, 8 bits of exponent and 7 of fraction
  float16    // IEEE 754 binary16
};

// "float32"; "" for what is no type.
[[nodiscard]] HEADLIGHT_API std::string_view name(NumberType type) noexcept;

[[nodiscard]] constexpr std::size_t bytes_of(NumberType type) noexcept { return type == NumberType::float32 ? 4 : 2; }

}  // namespace headlight
