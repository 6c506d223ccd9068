// Shapes in messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/list_text.h"

namespace headlight::models {

// "[2, 5, 3, 64]"
[[nodiscard]] inline std::string describe(std::span<const std::int64_t> shape) {
  std::string extents;
  for (const std::int64_t extent : shape) runtime::append_item(extents, std::to_string(extent));
  return "[" + extents + "]";
}

}  // namespace headlight::models
