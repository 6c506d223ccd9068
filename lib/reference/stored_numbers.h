// Number k of a row as each storage format has it, in float64, one at a time: from the descriptions of the formats
// (headlight/models/safetensors.h; block_q8_0 and the others of ggml-common.h in https://github.com/ggml-org/ggml).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "headlight/storage_format.h"

namespace headlight::reference {

// Bytes of a file, read bit by bit: bit i is bit i mod 8 of byte ⌊i / 8⌋.
class StoredBytes {
 public:
  explicit StoredBytes(const void* bytes) : bytes_(static_cast<const unsigned char*>(bytes)) {}

  [[nodiscard]] StoredBytes from(std::int64_t byte) const { return StoredBytes(bytes_ + byte); }
  [[nodiscard]] std::int64_t bits(std::int64_t first, int count) const {
    std::int64_t value = 0;
    for (int bit = count - 1; bit >= 0; --bit) {
      const std::int64_t at = first + bit;
      value = 2 * value + (bytes_[at / 8] >> at % 8 & 1);
    }
    return value;
  }
  [[nodiscard]] std::int64_t signed_byte(std::int64_t byte) const {
    const std::int64_t value = bits(8 * byte, 8);
    return value < 128 ? value : value - 256;
  }
  // A sign, exponent and fraction bits.
  [[nodiscard]] double binary(std::int64_t byte, int exponents, int fractions) const {
    const std::int64_t fraction = bits(8 * byte, fractions), exponent = bits(8 * byte + fractions, exponents);
    const double sign = bits(8 * byte + fractions + exponents, 1) == 0 ? 1.0 : -1.0;
    const int bias = (1 << (exponents - 1)) - 1;
    if (exponent == (std::int64_t{1} << exponents) - 1) {
      const double special = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
      return std::copysign(special, sign);
    }
    const double one = exponent == 0 ? 0.0 : std::ldexp(1.0, fractions);
    const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - bias - fractions;
    return sign * std::ldexp(one + static_cast<double>(fraction), power);
  }
  [[nodiscard]] double float16(std::int64_t byte) const { return binary(byte, 5, 10); }
  [[nodiscard]] double bfloat16(std::int64_t byte) const { return binary(byte, 8, 7); }
  [[nodiscard]] double float32(std::int64_t byte) const { return binary(byte, 8, 23); }

 private:
  const unsigned char* bytes_;
};

// Scale or minimum (which = 0 or 1) of group g of q4_k and q5_k: 6 bits of the twelve bytes from byte 4 on.
[[nodiscard]] inline std::int64_t k_group_bits(const StoredBytes& block, std::int64_t g, int which) {
  if (g < 4) return block.bits(8 * (4 + 4 * which + g), 6);
  return block.bits(8 * (8 + g) + 4 * which, 4) + 16 * block.bits(8 * (4 + 4 * which + g - 4) + 6, 2);
}

[[nodiscard]] inline double stored_number(StorageFormat format, const void* row, const void* scales, std::int64_t k) {
  const StoredBytes all(row), beside(scales);
  switch (format) {
    case StorageFormat::float32:
      return all.float32(4 * k);
    case StorageFormat::bfloat16:
      return all.bfloat16(2 * k);
    case StorageFormat::float16:
      return all.float16(2 * k);
    case StorageFormat::int8:
      return static_cast<double>(all.signed_byte(k)) * beside.float32(0);
    case StorageFormat::int4:
      return static_cast<double>(all.bits(4 * k, 4) - 8) * beside.bfloat16(k / 32 * 2);
    case StorageFormat::q8_0: {
      const StoredBytes block = all.from(k / 32 * 34);
      return block.float16(0) * static_cast<double>(block.signed_byte(2 + k % 32));
    }
    case StorageFormat::q4_0: {
      const StoredBytes block = all.from(k / 32 * 18);
      const std::int64_t n = k % 32;
      return block.float16(0) * static_cast<double>(block.bits(8 * (2 + n % 16) + n / 16 * 4, 4) - 8);
    }
    case StorageFormat::q4_1: {
      const StoredBytes block = all.from(k / 32 * 20);
      const std::int64_t n = k % 32;
      return block.float16(0) * static_cast<double>(block.bits(8 * (4 + n % 16) + n / 16 * 4, 4)) + block.float16(2);
    }
    case StorageFormat::q4_k:
    case StorageFormat::q5_k: {
      const bool has_fifth = format == StorageFormat::q5_k;
      const StoredBytes block = all.from(k / 256 * (has_fifth ? 176 : 144));
      const std::int64_t g = k % 256 / 32, l = k % 32;
      std::int64_t q = block.bits(8 * ((has_fifth ? 48 : 16) + g / 2 * 32 + l) + g % 2 * 4, 4);
      if (has_fifth) q += 16 * block.bits(8 * (16 + l) + g, 1);
      const auto s = static_cast<double>(k_group_bits(block, g, 0)), m = static_cast<double>(k_group_bits(block, g, 1));
      return block.float16(0) * s * static_cast<double>(q) - block.float16(2) * m;
    }
    case StorageFormat::q6_k: {
      const StoredBytes block = all.from(k / 256 * 210);
      const std::int64_t half = k % 256 / 128, quarter = k % 128 / 32, l = k % 32;
      const std::int64_t low = block.bits(8 * (64 * half + 32 * (quarter % 2) + l) + quarter / 2 * 4, 4);
      const std::int64_t high = block.bits(8 * (128 + 32 * half + l) + 2 * quarter, 2);
      const auto s = static_cast<double>(block.signed_byte(192 + k % 256 / 16));
      return block.float16(208) * s * static_cast<double>(low + 16 * high - 32);
    }
  }
  return std::nan("");
}

}  // namespace headlight::reference
