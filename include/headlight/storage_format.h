// How the numbers of a weight lie in a file: one behind another, or in blocks with scales of their own.
//
// A row of a matrix [N, K] is K numbers in blocks, the next row begins with a block of its own, and nothing lies
// between. Whatever multiplies such a matrix reads it where it lies, a few rows at a time, widened to float32 or as the
// integers that it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "headlight/export.h"
#include "headlight/number_type.h"

namespace headlight {

// int8 and int4 are those that write_safetensors() makes (headlight/models/safetensors.h); those behind them are blocks
// of ggml, which GGUF files hold (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
enum class StorageFormat : std::uint8_t {
  float32,
  bfloat16,
  float16,
  int8,  // a scale of float32 for each row, beside
  int4,  // two numbers to a byte, a scale of bfloat16 for each 32 numbers of a row, beside
  q8_0,  // 32 integers of 8 bits and their scale
  q4_0,  // 32 of 4 bits and their scale
  q4_1,  // the same, and their minimum
  q4_k,  // 256 of 4 bits, in groups of 32 with a scale and a minimum each, of 6 bits
  q5_k,  // the same of 5 bits
  q6_k   // 256 of 6 bits, in groups of 16 with a scale each, of 8 bits
};

// Numbers of a type as they lie in a file, which those of the first formats are.
[[nodiscard]] constexpr StorageFormat format_of(NumberType type) noexcept { return static_cast<StorageFormat>(type); }

// What there is to know of a format. Each is one line of one table, lib/storage/formats.cc.
struct StorageFormatInfo {
  StorageFormat format;
  // "q4_k"
  std::string_view name;
  // Of a block. A row of K numbers has ⌈K / numbers⌉ of them; and whether K must be a multiple.
  std::int64_t numbers;
  std::int64_t bytes;
  bool has_whole_blocks;
  // In each block, so many scales and minima.
  int scales;
  int minima;
  // Where scales lie beside the blocks, in memory of their own: a row has one for each so many numbers, or (0) one for
  // all; and what they are.
  std::optional<NumberType> beside;
  std::int64_t numbers_of_scale;
  // What the address of its numbers is a multiple of.
  std::size_t alignment;
  // The type of numbers that it is one behind another, of which tensors are; and the type whose panels take its
  // integers as they are (PackedMatrix).
  std::optional<NumberType> plain;
  std::optional<NumberType> panels;
  // In files: the dtype of safetensors, or ""; the number and the name of a type of GGUF, or −1 and "".
  std::string_view safetensors;
  int gguf;
  std::string_view gguf_name;
};

// All formats, in the order of their enumeration; and one of them.
[[nodiscard]] HEADLIGHT_API std::span<const StorageFormatInfo> storage_formats() noexcept;
[[nodiscard]] HEADLIGHT_API const StorageFormatInfo& info(StorageFormat format) noexcept;

// Numbers as they lie somewhere, which is nobody's but the caller's: rows of blocks, and scales where the format has
// those beside.
struct StoredNumbers {
  StorageFormat format = StorageFormat::float32;  // how they lie
  const void* data = nullptr;                     // where
  // Of all rows.
  std::int64_t count = 0;
  const void* scales = nullptr;

  // Whether there are any.
  [[nodiscard]] explicit operator bool() const noexcept { return data != nullptr; }
};

// Bytes of a row of so many columns, and of its scales where they lie beside.
[[nodiscard]] HEADLIGHT_API std::int64_t row_bytes(StorageFormat format, std::int64_t columns) noexcept;
[[nodiscard]] HEADLIGHT_API std::int64_t row_scale_bytes(StorageFormat format, std::int64_t columns) noexcept;

// Rows first … first + count − 1 of stored numbers whose rows have so many columns, where they lie.
[[nodiscard]] HEADLIGHT_API StoredNumbers some_rows(const StoredNumbers& stored, std::int64_t columns,
                                                    std::int64_t first, std::int64_t count) noexcept;

// Rows first … first + count − 1 of stored numbers whose rows have so many columns, as floats, one row behind another:
// each number as its format says, exactly but for one rounding to float32.
HEADLIGHT_API void widen_rows(const StoredNumbers& stored, std::int64_t columns, std::int64_t first, std::int64_t count,
                              float* to) noexcept;

}  // namespace headlight
