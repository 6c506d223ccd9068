// Checks of sizes given to constructors.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "headlight/out_of_memory.h"
#include "ops/check.h"

namespace headlight::layers {

// `value` if it is ≥ least; else throws.
inline std::int64_t at_least(std::int64_t least, std::string_view layer, std::string_view option, std::int64_t value) {
  if (value < least) {
    ops::fail(layer, option, " is ", value, ", expected at least ", least);
  }
  return value;
}

// `value` if it is in [0, 1); else throws.
inline float probability(std::string_view layer, std::string_view option, float value) {
  ops::check_probability(layer, option, value);
  return value;
}

[[noreturn]] inline void refuse_weight(std::string_view layer, std::string_view weight, const std::string& shape) {
  throw OutOfMemory(std::string(layer) + " with " + std::string(weight) + " [" + shape + "]", SIZE_MAX);
}

// [rows, columns] of a weight; throws where no memory has addresses for so many floats.
inline std::array<std::int64_t, 2> matrix_shape(std::string_view layer, std::string_view weight, std::int64_t rows,
                                                std::int64_t columns) {
  std::int64_t count = 0;
  if (__builtin_mul_overflow(rows, columns, &count) || count > INT64_MAX / 8) {
    refuse_weight(layer, weight, std::to_string(rows) + ", " + std::to_string(columns));
  }
  return {rows, columns};
}

// [width] of a vector of weights; throws where no memory has addresses for so many floats.
inline std::array<std::int64_t, 1> vector_shape(std::string_view layer, std::string_view weight, std::int64_t width) {
  if (width > INT64_MAX / 8) refuse_weight(layer, weight, std::to_string(width));
  return {width};
}

// B · L rows; throws where that is no number of rows.
inline std::int64_t row_count(std::string_view layer, std::int64_t batch, std::int64_t length) {
  std::int64_t rows = 0;
  if (batch < 0 || length < 0 || __builtin_mul_overflow(batch, length, &rows)) {
    ops::fail(layer, "[B, L] is [", batch, ", ", length, "], expected extents ≥ 0 with a product of less than 2⁶³");
  }
  return rows;
}

// A size that 0 leaves to another.
constexpr std::int64_t given_or(std::int64_t value, std::int64_t otherwise) noexcept {
  return value == 0 ? otherwise : value;
}

}  // namespace headlight::layers
