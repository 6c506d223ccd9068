// What whoever takes packed sequences asks of the list that says where each begins.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/inner_api.h"

namespace headlight::ops {

// [n + 1] ascending from 0 to `length`, the size of `axis`. Throws std::invalid_argument("operation: name …").
HEADLIGHT_INNER_API void check_offsets(std::string_view operation, std::string_view name,
                                       std::span<const std::int64_t> offsets, std::int64_t length,
                                       std::string_view axis);

}  // namespace headlight::ops
