// Rows of operands of any type that floats can be stored in, into what kernels of floats or of pairs take, and back.
#pragma once

#include "kernels/attention/dropout-inl.h"
#include "kernels/attention/kernels.h"
#include "kernels/attention/pack-inl.h"
#include "kernels/attention/state-inl.h"
#include "kernels/numbers-inl.h"
#include "kernels/rows/convert_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline float finish_typed(const kernels::AttentionState& state, std::int64_t value_dim, NumberType type,
                          void* out) noexcept {
  return with_numbers(type, [&](auto numbers) {
    using Numbers = decltype(numbers);
    return finish<Numbers>(state, value_dim, static_cast<typename Numbers::Storage*>(out));
  });
}

inline void copy_typed_rows(const kernels::Operand& from, float factor, std::int64_t rows, std::int64_t columns,
                            float* to) noexcept {
  with_rows(from.type, [&](auto numbers) { scaled_rows<decltype(numbers)>(from, factor, rows, columns, to); });
}

inline bool all_typed_finite(const kernels::Operand& from, std::int64_t rows, std::int64_t columns) noexcept {
  if (from.type == NumberType::int8) return all_scales_finite(from, rows);
  return with_numbers(from.type, [&](auto numbers) { return all_finite<decltype(numbers)>(from, rows, columns); });
}

inline void drop_weights_of_sequence(const kernels::AttentionDropout& dropout, const kernels::DropoutPlace& place,
                                     std::int64_t keys, float* weights) noexcept {
  drop_weights(dropout, place, 0, 0, keys, weights);
}

}  // namespace headlight::HEADLIGHT_TARGET
