// Numbers of any type that floats can be stored in, as floats.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headlight/number_type.h"
#include "headlight/storage_types.h"

namespace headlight::layers {

// `count` numbers of float32, bfloat16 or float16, exactly.
inline void widen(NumberType type, const void* from, std::int64_t count, float* to) noexcept {
  const auto widened = [](auto number) { return static_cast<float>(number); };
  if (type == NumberType::bfloat16) {
    const auto* const numbers = static_cast<const BFloat16*>(from);
    std::transform(numbers, numbers + count, to, widened);
  } else if (type == NumberType::float16) {
    const auto* const numbers = static_cast<const Float16*>(from);
    std::transform(numbers, numbers + count, to, widened);
  } else {
    std::copy_n(static_cast<const float*>(from), count, to);
  }
}

}  // namespace headlight::layers
