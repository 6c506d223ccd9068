// Shapes in messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace headlight::models {

// "[2, 5, 3, 64]"
[[nodiscard]] inline std::string describe(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text += ']';
}

}  // namespace headlight::models
