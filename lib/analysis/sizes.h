// Sizes that the analysis takes: small enough that no product of two of them leaves 63 bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ops/check.h"

namespace headlight::analysis {

// Of a row of numbers, and of heads.
constexpr std::int64_t kWidest = (1 << 20) - 1;

inline void check_size(std::string_view operation, std::string_view name, std::int64_t size, std::int64_t least,
                       std::int64_t most) {
  if (size >= least && size <= most) return;
  ops::fail(operation, std::string(name) + " is " + std::to_string(size) + ", expected " + std::to_string(least) +
                           " to " + std::to_string(most));
}

// A width that is cut into heads.
inline void check_width(std::string_view operation, std::int64_t width, std::int64_t heads) {
  check_size(operation, "width", width, 1, kWidest);
  check_size(operation, "heads", heads, 1, width);
  if (width % heads != 0) {
    ops::fail(operation,
              "heads is " + std::to_string(heads) + ", expected a divisor of width, which is " + std::to_string(width));
  }
}

}  // namespace headlight::analysis
