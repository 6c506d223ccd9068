// A matrix as the kernels on rows take it.
#pragma once

#include <cstdint>

namespace headlight::kernels {

// Its first element, and the distance between rows in elements; rows are contiguous. Null: not given.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;

  // Inlined always: see simd/integers.h.
  [[nodiscard]] [[gnu::always_inline]] T* row(std::int64_t n) const noexcept { return data + n * stride; }
};

}  // namespace headlight::kernels
