// Dropout along rows, the mask drawn as it is needed.
#pragma once

#include "kernels/rows/kernels.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/philox-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Of a row that keeps every number: without words, which take longer than all else.
template <bool kResidual>
HEADLIGHT_INLINE void scale_row(const float* x, Vec scale, const float* residual, float* y, std::int64_t columns) {
  walk_columns<1>(columns, [&](auto some, std::int64_t at) {
    Vec kept = mul(some.get(x + at), scale);
    if constexpr (kResidual) kept = add(kept, some.get(residual + at));
    some.put(kept, y + at);
  });
}

template <bool kResidual>
HEADLIGHT_INLINE void dropout_row(const kernels::DropoutArguments& a, const DropoutRow& place, const float* x,
                                  const float* residual, float* y) {
  const Vec scale = broadcast(a.scale);
  if (a.threshold == 0) return scale_row<kResidual>(x, scale, residual, y, a.columns);
  const auto keep = [&](auto some, IntVec words, std::int64_t from) {
    Vec kept = keep_where_at_least(words, a.threshold, mul(some.get(x + from), scale));
    if constexpr (kResidual) kept = add(kept, some.get(residual + from));
    some.put(kept, y + from);
  };
  for (std::int64_t at = 0; at < a.columns; at += 4 * kLanes) {
    IntVec words[4];
    dropout_words(place, static_cast<std::uint32_t>(at / 4), words);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const std::int64_t from = at + k * kLanes;
      const std::int64_t left = a.columns - from;
      if (left >= kLanes) {
        keep(WholeVector{}, words[k], from);
      } else if (left > 0) {
        keep(PartOfVector{static_cast<int>(left)}, words[k], from);
      }
    }
  }
}

inline void dropout(const kernels::DropoutArguments& a) noexcept {
  for (std::int64_t n = 0; n < a.rows; ++n) {
    const auto row = static_cast<std::uint64_t>(a.first_row + n);
    const DropoutRow place = {static_cast<std::uint32_t>(a.seed), static_cast<std::uint32_t>(a.seed >> 32),
                              static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32), a.stream};
    const float* x = a.x.row(n);
    float* y = a.y.row(n);
    if (a.residual.data != nullptr) {
      dropout_row<true>(a, place, x, a.residual.row(n), y);
    } else {
      dropout_row<false>(a, place, x, nullptr, y);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
