// Rows of a storage format, filled with any bytes that are finite numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "headlight/storage_format.h"
#include "headlight/storage_types.h"
#include "support/random.h"

namespace headlight::test {

// `rows` rows of `columns` numbers, in memory that ends with them. Integers are any; scales, in blocks and beside, are
// around `scale` and of both signs.
class StoredRows {
 public:
  StoredRows(Random& random, StorageFormat format, std::int64_t rows, std::int64_t columns, float scale = 0.01f)
      : format_(format),
        count_(rows * columns),
        blocks_(static_cast<std::size_t>(rows * row_bytes(format, columns))),
        scales_(static_cast<std::size_t>(rows * row_scale_bytes(format, columns))) {
    const StorageFormatInfo& of = info(format);
    for (std::byte& byte : blocks_) byte = static_cast<std::byte>(random.next() & 255);
    if (of.plain) {
      for (std::int64_t n = 0; n < count_; ++n) put(blocks_.data() + n * of.bytes, *of.plain, random.normal() * scale);
    }
    for (std::size_t at = 0; at < blocks_.size(); at += static_cast<std::size_t>(of.bytes)) {
      for (const std::int64_t half : halves_of(format)) {
        put(blocks_.data() + at + half, NumberType::float16, random.normal() * scale);
      }
    }
    if (!of.beside) return;
    const std::size_t bytes = bytes_of(*of.beside);
    for (std::size_t at = 0; at < scales_.size(); at += bytes) {
      put(scales_.data() + at, *of.beside, random.normal() * scale);
    }
  }

  [[nodiscard]] StoredNumbers view() const noexcept {
    return {format_, blocks_.data(), count_, scales_.empty() ? nullptr : scales_.data()};
  }
  [[nodiscard]] std::vector<std::byte>& blocks() noexcept { return blocks_; }
  [[nodiscard]] std::vector<std::byte>& scales() noexcept { return scales_; }

  // Where numbers of float16 lie in a block.
  static std::vector<std::int64_t> halves_of(StorageFormat format) {
    switch (format) {
      case StorageFormat::q8_0:
      case StorageFormat::q4_0:
        return {0};
      case StorageFormat::q4_1:
      case StorageFormat::q4_k:
      case StorageFormat::q5_k:
        return {0, 2};
      case StorageFormat::q6_k:
        return {208};
      default:
        return {};
    }
  }

 private:
  static void put(std::byte* to, NumberType type, float value) {
    const auto store = [&](auto stored) { std::memcpy(to, &stored, sizeof stored); };
    if (type == NumberType::float32) return store(value);
    if (type == NumberType::bfloat16) return store(BFloat16(value));
    store(Float16(value));
  }

  StorageFormat format_;
  std::int64_t count_;
  std::vector<std::byte> blocks_, scales_;
};

}  // namespace headlight::test
