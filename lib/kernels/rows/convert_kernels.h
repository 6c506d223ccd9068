// Rows of one type of number from rows of another. One thread, no allocation.
#pragma once

#include <cstdint>

#include "headlight/number_type.h"

namespace headlight::kernels {

// Rows [rows, columns] whose distances are in numbers of their type, which is any that floats can be stored in.
struct ConvertKernels {
  // Exactly.
  void (*widen_rows)(const void* from, NumberType type, std::int64_t from_stride, std::int64_t rows,
                     std::int64_t columns, float* to, std::int64_t to_stride) noexcept;
  // To the nearest number, ties to even.
  void (*narrow_rows)(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
                      NumberType type, void* to, std::int64_t to_stride) noexcept;
};

}  // namespace headlight::kernels
