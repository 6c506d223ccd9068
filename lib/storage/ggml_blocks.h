// Blocks of 32 numbers, as ggml writes them (ggml-common.h and dequantize_row_*() in ggml-quants.c of
// https://github.com/ggml-org/ggml), d and m of float16:
//
//   q8_0   bytes 0–1 d, 2–33 q, signed                       w_k = d q_k
//   q4_0   bytes 0–1 d, 2–17 q                               w_k = d (q_k − 8)
//   q4_1   bytes 0–1 d, 2–3 m, 4–19 q                        w_k = d q_k + m
//
// Of 16 bytes with numbers of 4 bits byte b holds number b in its lower half and number b + 16 in its upper one. Each
// product is exact in float32.
#pragma once

#include <cstdint>

#include "headlight/storage_types.h"
#include "storage/formats.h"
#include "storage/read.h"

namespace headlight::storage {

inline constexpr std::int64_t kGgmlBlock = 32;
inline constexpr std::int64_t kQ80Bytes = 34, kQ40Bytes = 18, kQ41Bytes = 20;

// f(block, first number) for each block of a row.
template <class Function>
void for_each_block(const Row& row, std::int64_t count, std::int64_t numbers, std::int64_t bytes,
                    const Function& f) noexcept {
  const auto* block = static_cast<const std::uint8_t*>(row.blocks);
  for (std::int64_t k = 0; k < count; k += numbers, block += bytes) f(block, k);
}

inline void widen_q8_0(const Row& row, std::int64_t count, float* to) noexcept {
  for_each_block(row, count, kGgmlBlock, kQ80Bytes, [to](const std::uint8_t* block, std::int64_t first) {
    const float d = read_half<Float16>(block);
    for (std::int64_t k = 0; k < kGgmlBlock; ++k) {
      to[first + k] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + k]));
    }
  });
}

// Numbers of 4 bits of a block, d q + m, q from −zero on.
inline void widen_halves(const std::uint8_t* bytes, int zero, float d, float m, float* to) noexcept {
  for (std::int64_t b = 0; b < kGgmlBlock / 2; ++b) {
    to[b] = d * static_cast<float>((bytes[b] & 15) - zero) + m;
    to[b + kGgmlBlock / 2] = d * static_cast<float>((bytes[b] >> 4) - zero) + m;
  }
}

inline void widen_q4_0(const Row& row, std::int64_t count, float* to) noexcept {
  for_each_block(row, count, kGgmlBlock, kQ40Bytes, [to](const std::uint8_t* block, std::int64_t first) {
    widen_halves(block + 2, 8, read_half<Float16>(block), -0.0f, to + first);  // to which −0 is nothing
  });
}

inline void q4_0_integers(const Row& row, std::int64_t count, float* to, float* scales) noexcept {
  for_each_block(row, count, kGgmlBlock, kQ40Bytes, [=](const std::uint8_t* block, std::int64_t first) {
    widen_halves(block + 2, 8, 1.0f, -0.0f, to + first);
    scales[first / kGgmlBlock] = read_half<Float16>(block);
  });
}

inline void widen_q4_1(const Row& row, std::int64_t count, float* to) noexcept {
  for_each_block(row, count, kGgmlBlock, kQ41Bytes, [to](const std::uint8_t* block, std::int64_t first) {
    widen_halves(block + 4, 0, read_half<Float16>(block), read_half<Float16>(block + 2), to + first);
  });
}

}  // namespace headlight::storage
