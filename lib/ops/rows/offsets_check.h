// What operations on packed sequences ask of the list that says where each begins.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ops/check.h"

namespace headlight::ops {

// [n + 1] ascending from 0 to the number of rows of `tensor`.
inline void check_offsets(std::string_view operation, std::span<const std::int64_t> offsets, std::int64_t rows,
                          std::string_view tensor = "x") {
  if (offsets.empty()) fail(operation, "offsets is empty, expected [n + 1] entries");
  if (offsets.front() != 0) {
    fail(operation, "offsets begins with ", offsets.front(), ", expected 0");
  }
  for (std::size_t s = 1; s < offsets.size(); ++s) {
    if (offsets[s] < offsets[s - 1]) {
      fail(operation, "offsets[", s, "] is ", offsets[s], ", expected at least ", offsets[s - 1], " (the one before)");
    }
  }
  if (offsets.back() != rows) {
    fail(operation, "offsets ends with ", offsets.back(), ", expected ", rows, " (the rows of ", tensor, ")");
  }
}

}  // namespace headlight::ops
