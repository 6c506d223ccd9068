// int8 and int4 as write_safetensors() makes them (headlight/models/safetensors.h): integers, and in memory of their
// own the scales, s.
//
//   int8   byte k is q_k, signed                            w_k = q_k s             s float32, one for the row
//   int4   byte b is (q_2b + 8) + 16 (q_2b+1 + 8)           w_k = q_k s_⌊k / 32⌋    s bfloat16
#pragma once

#include <algorithm>
#include <cstdint>

#include "headlight/storage_types.h"
#include "storage/formats.h"
#include "storage/read.h"

namespace headlight::storage {

inline constexpr std::int64_t kInt4Group = 32;

inline void int8_integers(const Row& row, std::int64_t count, float* to, float* scales) noexcept {
  const auto* const numbers = static_cast<const std::int8_t*>(row.blocks);
  for (std::int64_t k = 0; k < count; ++k) to[k] = static_cast<float>(numbers[k]);
  *scales = read<float>(row.scales);
}

inline void widen_int8(const Row& row, std::int64_t count, float* to) noexcept {
  const auto* const numbers = static_cast<const std::int8_t*>(row.blocks);
  const auto scale = read<float>(row.scales);
  for (std::int64_t k = 0; k < count; ++k) to[k] = static_cast<float>(numbers[k]) * scale;
}

// Numbers k … of `bytes`, two to a byte, times a scale.
inline void widen_nibbles(const std::uint8_t* bytes, std::int64_t count, float scale, float* to) noexcept {
  for (std::int64_t b = 0; b < count / 2; ++b) {
    to[2 * b] = static_cast<float>((bytes[b] & 15) - 8) * scale;
    to[2 * b + 1] = static_cast<float>((bytes[b] >> 4) - 8) * scale;
  }
  if (count % 2 != 0) to[count - 1] = static_cast<float>((bytes[count / 2] & 15) - 8) * scale;
}

inline void int4_integers(const Row& row, std::int64_t count, float* to, float* scales) noexcept {
  widen_nibbles(static_cast<const std::uint8_t*>(row.blocks), count, 1.0f, to);
  const auto* const from = static_cast<const std::uint8_t*>(row.scales);
  for (std::int64_t k = 0; k < count; k += kInt4Group) {
    scales[k / kInt4Group] = read_half<BFloat16>(from + k / kInt4Group * 2);
  }
}

inline void widen_int4(const Row& row, std::int64_t count, float* to) noexcept {
  const auto* const bytes = static_cast<const std::uint8_t*>(row.blocks);
  const auto* const scales = static_cast<const std::uint8_t*>(row.scales);
  for (std::int64_t k = 0; k < count; k += kInt4Group) {
    widen_nibbles(bytes + k / 2, std::min(kInt4Group, count - k), read_half<BFloat16>(scales + k / kInt4Group * 2),
                  to + k);
  }
}

}  // namespace headlight::storage
