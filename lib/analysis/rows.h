// Rows that a caller chose.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ops/check.h"

namespace headlight::analysis {

inline void check_rows(std::string_view operation, std::span<const std::int64_t> rows, std::int64_t count) {
  for (const std::int64_t row : rows) {
    if (row >= 0 && row < count) continue;
    ops::fail(operation, "rows holds " + std::to_string(row) + ", expected 0 to " + std::to_string(count - 1));
  }
}

}  // namespace headlight::analysis
