// How the feed-forward part goes through its rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layers/rows.h"

namespace headlight::layers {

// How many rows go through both products at a time, so that scratch memory does not grow with the batch. For speed
// alone it does not matter: the blocking of the products hides how much lies between them.
inline std::int64_t rows_at_once(std::int64_t rows, std::int64_t hidden_width) noexcept {
  constexpr std::int64_t kHiddenBytes = std::int64_t{8} << 20;
  constexpr std::int64_t kLeastRows = 192;
  const std::int64_t fitting = kHiddenBytes / (row_distance(hidden_width) * std::int64_t{sizeof(float)});
  return std::min(rows, std::max(fitting, kLeastRows));
}

}  // namespace headlight::layers
