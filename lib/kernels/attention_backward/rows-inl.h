// Rows of the tensors, read for a tile of attention's backward pass and given back by it.
#pragma once

#include "kernels/attention/tile-inl.h"
#include "kernels/numbers-inl.h"
#include "kernels/operand.h"

namespace headlight::HEADLIGHT_TARGET {

template <class Numbers>
void pad_rows(const kernels::Operand& from, std::int64_t rows, std::int64_t dim, float* to, std::int64_t padded) {
  const auto* row = from.numbers<typename Numbers::Storage>();
  for (std::int64_t r = 0; r < rows; ++r, row += from.stride, to += padded) {
    for (std::int64_t d = 0; d < dim; d += kLanes) {
      store(load_numbers<Numbers>(row + d, static_cast<int>(smaller(kLanes, dim - d))), to + d);
    }
  }
}

template <class Numbers>
void give_rows(const float* from, std::int64_t padded, std::int64_t rows, std::int64_t dim, float factor, bool add_to,
               typename Numbers::Storage* to, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r, from += padded, to += stride) {
    for (std::int64_t d = 0; d < dim; d += Numbers::kOfLine) __builtin_prefetch(to + kPrefetchRows * stride + d, 1);
    for (std::int64_t d = 0; d < dim; d += kLanes) {
      const int lanes = static_cast<int>(smaller(kLanes, dim - d));
      const Vec before = add_to ? load_numbers<Numbers>(to + d, lanes) : zero();
      store_numbers<Numbers>(fma(load(from + d), broadcast(factor), before), to + d, lanes);
    }
  }
}

template <class NumbersA, class NumbersB>
void row_dots(const kernels::Operand& a, const kernels::Operand& b, std::int64_t rows, std::int64_t dim, float* to,
              std::int64_t stride) {
  const auto* of_a = a.numbers<typename NumbersA::Storage>();
  const auto* of_b = b.numbers<typename NumbersB::Storage>();
  for (std::int64_t r = 0; r < rows; ++r, of_a += a.stride, of_b += b.stride) {
    Vec sum = zero();
    for (std::int64_t d = 0; d < dim; d += kLanes) {
      const int lanes = static_cast<int>(smaller(kLanes, dim - d));
      sum = fma(load_numbers<NumbersA>(of_a + d, lanes), load_numbers<NumbersB>(of_b + d, lanes), sum);
    }
    to[r * stride] = sum_of_lanes(sum);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
