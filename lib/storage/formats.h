// How rows of each storage format are read.
#pragma once

#include <cstdint>

#include "headlight/storage_format.h"

namespace headlight::storage {

// One row: where its blocks begin, and its scales where they lie beside.
struct Row {
  const void* blocks;
  const void* scales;
};

struct Format {
  StorageFormatInfo info;
  // `count` numbers of a row as floats.
  void (*widen)(const Row& row, std::int64_t count, float* to) noexcept;
  // The same as integers, and the scale of each group of integers that share one: number k of group g is exactly
  // to[k] · scales[g]. Null where info.panels is none.
  void (*integers)(const Row& row, std::int64_t count, float* to, float* scales) noexcept;
};

[[nodiscard]] const Format& table_entry(StorageFormat format) noexcept;

// ⌈count / by⌉ without a sum: a file may name extents near 2⁶³.
[[nodiscard]] constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) noexcept {
  return count / by + (count % by != 0 ? 1 : 0);
}

// How many scales stand beside a row, or in its blocks.
[[nodiscard]] constexpr std::int64_t scales_of_row(const StorageFormatInfo& of, std::int64_t columns) noexcept {
  return of.numbers_of_scale == 0 ? 1 : divide_up(columns, of.numbers_of_scale);
}

// The row of that number.
[[nodiscard]] Row row_of(const StoredNumbers& stored, std::int64_t columns, std::int64_t row) noexcept;

}  // namespace headlight::storage
