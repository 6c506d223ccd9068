#include "headlight/number_type.h"

#include <array>

namespace headlight {

std::string_view name(NumberType type) noexcept {
  static constexpr std::array<std::string_view, 3> kNames = {"float32", "bfloat16", "float16"};
  const auto index = static_cast<std::size_t>(type);
  return index < kNames.size() ? kNames[index] : "";
}

}  // namespace headlight
