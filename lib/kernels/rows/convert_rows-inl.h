// Rows of one type of number from rows of another.
#pragma once

#include <cstdint>

#include "kernels/numbers-inl.h"
#include "kernels/rows/sweep-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline void widen_rows(const void* from, NumberType type, std::int64_t from_stride, std::int64_t rows,
                       std::int64_t columns, float* to, std::int64_t to_stride) noexcept {
  with_numbers(type, [&](auto numbers) {
    using Numbers = decltype(numbers);
    const auto* row = static_cast<const typename Numbers::Storage*>(from);
    for (std::int64_t r = 0; r < rows; ++r, row += from_stride, to += to_stride) {
      sweep_row(columns,
                [&](auto some, int, std::int64_t at) { some.put(some.template get<Numbers>(row + at), to + at); });
    }
  });
}

inline void narrow_rows(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
                        NumberType type, void* to, std::int64_t to_stride) noexcept {
  with_numbers(type, [&](auto numbers) {
    using Numbers = decltype(numbers);
    auto* row = static_cast<typename Numbers::Storage*>(to);
    for (std::int64_t r = 0; r < rows; ++r, row += to_stride, from += from_stride) {
      sweep_row(columns,
                [&](auto some, int, std::int64_t at) { some.template put<Numbers>(some.get(from + at), row + at); });
    }
  });
}

}  // namespace headlight::HEADLIGHT_TARGET
