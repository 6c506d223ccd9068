// Numbers out of bytes that lie at any address, little-endian, as every format has them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "headlight/storage_types.h"

namespace headlight::storage {

static_assert(std::endian::native == std::endian::little, "files are used as they lie");

template <class T>
[[nodiscard]] inline T read(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
// A scale of float16 or bfloat16, exactly.
template <class Half>
[[nodiscard]] inline float read_half(const void* from) noexcept {
  return static_cast<float>(Half::from_bits(read<std::uint16_t>(from)));
}

}  // namespace headlight::storage
