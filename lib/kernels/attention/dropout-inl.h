// Dropout of a tile's weights.
#pragma once

#include "kernels/attention/kernels.h"
#include "kernels/attention/tile-inl.h"
#include "simd/philox-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline DropoutRow dropout_row_of(const kernels::AttentionDropout& dropout, const kernels::DropoutPlace& place) {
  return {static_cast<std::uint32_t>(dropout.seed), static_cast<std::uint32_t>(dropout.seed >> 32), place.row,
          place.head, dropout.stream};
}

// weights[j] ← weights[j] · (0 or scale) for first ≤ j < last; j counts from key first_key of the sequence, a multiple
// of 4 · kLanes. A factor, not a choice: a row that is NaN stays so.
inline void drop_weights(const kernels::AttentionDropout& dropout, const kernels::DropoutPlace& place,
                         std::int64_t first_key, std::int64_t first, std::int64_t last, float* weights) {
  const DropoutRow row = dropout_row_of(dropout, place);
  const Vec scale = broadcast(dropout.scale);
  for (std::int64_t at = first / (4 * kLanes) * (4 * kLanes); at < last; at += 4 * kLanes) {
    IntVec words[4];
    dropout_words(row, static_cast<std::uint32_t>((first_key + at) / 4), words);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const std::int64_t from = at + k * kLanes;
      const int count = static_cast<int>(smaller(kLanes, last - from));
      if (count <= 0) break;
      if (from + kLanes <= first) continue;  // no weights: what lies there may be anything
      const Vec factors = keep_where_at_least(words[k], dropout.threshold, scale);
      store_lanes(mul(load_lanes(weights + from, count), factors), weights + from, count);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
