// Rows of any type that floats can be stored in.
#pragma once

#include "kernels/attention_backward/kernels.h"
#include "kernels/attention_backward/rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline void pad_typed_rows(const kernels::Operand& from, std::int64_t rows, std::int64_t dim, float* to,
                           std::int64_t padded) noexcept {
  with_numbers(from.type, [&](auto numbers) { pad_rows<decltype(numbers)>(from, rows, dim, to, padded); });
}

inline void give_typed_rows(const float* from, std::int64_t padded, std::int64_t rows, std::int64_t dim, float factor,
                            bool add_to, NumberType type, void* to, std::int64_t stride) noexcept {
  with_numbers(type, [&](auto numbers) {
    using Numbers = decltype(numbers);
    give_rows<Numbers>(from, padded, rows, dim, factor, add_to, static_cast<typename Numbers::Storage*>(to), stride);
  });
}

inline void typed_row_dots(const kernels::Operand& a, const kernels::Operand& b, std::int64_t rows, std::int64_t dim,
                           float* to, std::int64_t stride) noexcept {
  with_numbers(a.type, [&](auto of_a) {
    with_numbers(b.type, [&](auto of_b) { row_dots<decltype(of_a), decltype(of_b)>(a, b, rows, dim, to, stride); });
  });
}

inline constexpr kernels::BackwardRowKernels kTypedBackwardRows = {
    .pad_rows = pad_typed_rows, .give_rows = give_typed_rows, .row_dots = typed_row_dots};

}  // namespace headlight::HEADLIGHT_TARGET
