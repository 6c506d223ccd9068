// How the feed-forward part goes through its rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layers/rows.h"

namespace headlight::layers {

// How many rows go through both products at a time, so that scratch memory does not grow with the batch. For speed
// alone it does not matter: 3200 rows of 512 → 2048 → 512 run within 2 % of each other with 1 MiB to 64 MiB between the
// products, which their blocking hides.
inline std::int64_t rows_at_once(std::int64_t rows, std::int64_t hidden_width) noexcept {
  constexpr std::int64_t kHiddenBytes = std::int64_t{8} << 20;
  constexpr std::int64_t kLeastRows = 192;
  const std::int64_t fitting = kHiddenBytes / (row_distance(hidden_width) * std::int64_t{sizeof(float)});
  return std::min(rows, std::max(fitting, kLeastRows));
}

}  // namespace headlight::layers
