// Rows that a caller chose, and those that a head has.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headlight/tensor.h"
#include "ops/check.h"

namespace headlight::analysis {

inline void check_rows(std::string_view operation, std::span<const std::int64_t> rows, std::int64_t count) {
  for (const std::int64_t row : rows) {
    if (row >= 0 && row < count) continue;
    ops::fail(operation, "rows holds " + std::to_string(row) + ", expected 0 to " + std::to_string(count - 1));
  }
}

inline std::int64_t rows_of_head(std::string_view operation, const View<const float, 2>& weight, std::int64_t heads) {
  ops::check_view(operation, "weight", weight);
  if (heads < 1 || weight.extent(0) % heads != 0) {
    ops::fail(operation, "weight has " + std::to_string(weight.extent(0)) + " rows, expected a multiple of the " +
                             std::to_string(heads) + " heads");
  }
  return weight.extent(0) / heads;
}

}  // namespace headlight::analysis
