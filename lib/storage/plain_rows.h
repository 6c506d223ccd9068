// float32, bfloat16 and float16: numbers one behind another.
#pragma once

#include <cstdint>

#include "headlight/storage_types.h"
#include "storage/formats.h"

namespace headlight::storage {

template <class Stored>
void widen_plain(const Row& row, std::int64_t count, float* to) noexcept {
  const auto* const numbers = static_cast<const Stored*>(row.blocks);
  for (std::int64_t k = 0; k < count; ++k) to[k] = static_cast<float>(numbers[k]);
}

}  // namespace headlight::storage
