// What the numbers of a matrix or of a tensor are stored as. Arithmetic is float32's, but for the products of packed
// matrices (headlight/gemm.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "headlight/export.h"

namespace headlight {

// What a number is stored as.
enum class NumberType : std::uint8_t {
  float32,   // IEEE 754 binary32
  bfloat16,  // its upper half: a sign, 8 bits of exponent and 7 of fraction
  float16,   // IEEE 754 binary16
  int8,      // integers of 8 bits, each times a scale that many share
  int4       // of 4 bits, two to a byte, likewise: of packed matrices alone
};

// All of them, in that order: what a matrix may be packed as, and what products of layers and models multiply in.
inline constexpr NumberType kNumberTypes[] = {NumberType::float32, NumberType::bfloat16, NumberType::float16,
                                              NumberType::int8, NumberType::int4};

// "float32"; "" for what is no type.
[[nodiscard]] HEADLIGHT_API std::string_view name(NumberType type) noexcept;
// And back; of "fp32", "bf16" and "fp16", too, as many command lines have it.
[[nodiscard]] HEADLIGHT_API std::optional<NumberType> parse_number_type(std::string_view name) noexcept;

// Of a number, rounded up to whole ones; scales are beside them.
[[nodiscard]] constexpr std::size_t bytes_of(NumberType type) noexcept {
  return type == NumberType::float32 ? 4 : type >= NumberType::int8 ? 1 : 2;
}

}  // namespace headlight
