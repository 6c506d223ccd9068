// Blocks of 256 numbers, ggml's k-quants (block_q4_K, block_q5_K and block_q6_K of ggml-common.h, and
// dequantize_row_*() of ggml-quants.c in https://github.com/ggml-org/ggml). d and e are of float16:
//
//   q4_k   bytes 0–1 d, 2–3 e, 4–15 s and m, 16–143 q                w_k = d s_g q_k − e m_g    g = ⌊k / 32⌋
//   q5_k   bytes 0–1 d, 2–3 e, 4–15 s and m, 16–47 h, 48–175 q       w_k = d s_g (q_k + 16 h_k) − e m_g
//   q6_k   bytes 0–127 q, 128–191 h, 192–207 s, signed, 208–209 d    w_k = d s_g (q_k + 16 h_k − 32)    g = ⌊k / 16⌋
//
// q4_k, q5_k: 32 bytes of q hold two groups, number l of the first in the lower half of byte l and that of the second
// in its upper half. Bit g of byte l of h is that of number l of group g. Of s and m, 6 bits each, a byte of the first
// four has s_g in its lower bits, of the next four m_g; the last four have four bits of s_g+4 and of m_g+4, whose upper
// two are those of the first eight bytes.
//
// q6_k: 64 bytes of q and 32 of h hold 128 numbers, four times 32: lower halves of bytes l and 32 + l, and then the
// upper halves, with bits 0–1, 2–3, 4–5 and 6–7 of byte l of h.
//
// A product d s has at most 19 significant bits, and one with q, but for the last rounding of q6_k, at most 24: all
// else is exact in float32.
#pragma once

#include <cstdint>

#include "headlight/storage_types.h"
#include "storage/formats.h"
#include "storage/ggml_blocks.h"
#include "storage/read.h"

namespace headlight::storage {

inline constexpr std::int64_t kKBlock = 256;
inline constexpr std::int64_t kQ4KBytes = 144, kQ5KBytes = 176, kQ6KBytes = 210;

// Of group g in 0 … 7, from the twelve bytes.
struct KScale {
  std::uint8_t scale, minimum;
};
inline KScale k_scale(const std::uint8_t* bytes, int g) noexcept {
  if (g < 4) return {static_cast<std::uint8_t>(bytes[g] & 63), static_cast<std::uint8_t>(bytes[g + 4] & 63)};
  return {static_cast<std::uint8_t>((bytes[g + 4] & 15) | (bytes[g - 4] >> 6) << 4),
          static_cast<std::uint8_t>((bytes[g + 4] >> 4) | (bytes[g] >> 6) << 4)};
}

// The two groups 2 p and 2 p + 1. `high` has the fifth bits of q5_k, or is null.
inline void widen_pair(const std::uint8_t* block, int p, const std::uint8_t* q, const std::uint8_t* high,
                       float* to) noexcept {
  const float d = read_half<Float16>(block), e = read_half<Float16>(block + 2);
  for (int g = 2 * p; g < 2 * p + 2; ++g, to += 32) {
    const KScale of_group = k_scale(block + 4, g);
    const float scale = d * static_cast<float>(of_group.scale), minimum = e * static_cast<float>(of_group.minimum);
    const int shift = g % 2 * 4;
    for (int l = 0; l < 32; ++l) {
      const int fifth = high == nullptr ? 0 : (high[l] >> g & 1) << 4;
      to[l] = scale * static_cast<float>((q[l] >> shift & 15) | fifth) - minimum;
    }
  }
}

inline void widen_q4_k(const Row& row, std::int64_t count, float* to) noexcept {
  for_each_block(row, count, kKBlock, kQ4KBytes, [to](const std::uint8_t* block, std::int64_t first) {
    for (int p = 0; p < 4; ++p) widen_pair(block, p, block + 16 + 32 * p, nullptr, to + first + 64 * p);
  });
}

inline void widen_q5_k(const Row& row, std::int64_t count, float* to) noexcept {
  for_each_block(row, count, kKBlock, kQ5KBytes, [to](const std::uint8_t* block, std::int64_t first) {
    for (int p = 0; p < 4; ++p) widen_pair(block, p, block + 48 + 32 * p, block + 16, to + first + 64 * p);
  });
}

inline void widen_q6_k(const Row& row, std::int64_t count, float* to) noexcept {
  for_each_block(row, count, kKBlock, kQ6KBytes, [to](const std::uint8_t* block, std::int64_t first) {
    const float d = read_half<Float16>(block + 208);
    for (int part = 0; part < 8; ++part) {  // of 32 numbers
      const int half = part / 4, quarter = part % 4;
      const std::uint8_t* const q = block + 64 * half + 32 * (quarter % 2);
      const std::uint8_t* const high = block + 128 + 32 * half;
      for (int l = 0; l < 32; ++l) {
        const float scale = d * static_cast<float>(static_cast<std::int8_t>(block[192 + 2 * part + l / 16]));
        const int number = (q[l] >> quarter / 2 * 4 & 15) | (high[l] >> 2 * quarter & 3) << 4;
        to[first + 32 * part + l] = scale * static_cast<float>(number - 32);
      }
    }
  });
}

}  // namespace headlight::storage
