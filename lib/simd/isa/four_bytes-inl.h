// Four bytes of memory at any address.
#pragma once

#include <cstdint>

#include "simd/target-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE std::int32_t four_bytes(const void* from) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

}  // namespace headlight::HEADLIGHT_TARGET
