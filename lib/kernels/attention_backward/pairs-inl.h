// Attention's backward pass where bfloat16 is multiplied by bfloat16: what differs from floats.
//
// Products take words, as attention_backward/kernels.h says. Of a few rows at a time the weights and score gradients
// are floats, in room that stays in the first cache level; rounded, two rows to a word, they go where dV and dK take
// them, and two keys to a word where dQ does.
#pragma once

#include "kernels/attention/pairs-inl.h"
#include "kernels/attention_backward/products-inl.h"
#include "kernels/attention_backward/scores-inl.h"

namespace headlight::HEADLIGHT_TARGET {

struct BackwardPairs {
  using Right = KeyPairs;
  static constexpr int kOfWord = 2;

  // One number of two that is not seen has zeros in b, as it has in a.
  template <class Seen>
  static HEADLIGHT_INLINE Vec add_seen(float a, const float* b, Vec sum, std::int64_t number, const Seen& seen) {
    const bool first = seen(number), second = seen(number + 1);
    if (!first && !second) return sum;
    const IntVec right = and_int(as_int(load(b)), broadcast_int(seen_halves(first, second)));
    return dot_bf16(broadcast(a), as_float(right), sum);
  }
};
static_assert(kBlockRows % 2 == 0, "no word holds rows of two groups");

// Rows first and second of the room, of which the second may not be there, to words of both: keys [seen.first,
// seen.last), and zeros around them.
inline void pair_rows_of_scores(const float* first, const float* second, const TileKeys& seen, std::int64_t all,
                                float* to) {
  std::int64_t j = 0;
  for (; j < seen.first; j += kLanes) store(zero(), to + j);
  if (second != nullptr) {
    for (; j < seen.last; j += kLanes) store(pair_to_bf16(load(first + j), load(second + j)), to + j);
  } else {
    for (; j < seen.last; j += kLanes) store(pair_to_bf16(load(first + j), zero()), to + j);
  }
  for (; j < all; j += kLanes) store(zero(), to + j);
}

// A row of the room to words of two keys.
inline void pair_keys_of_scores(const float* row, const TileKeys& seen, std::int64_t all, float* to) {
  const auto at = [&](std::int64_t j) { return j < seen.first || j >= seen.last ? zero() : load(row + j); };
  for (std::int64_t j = 0; j < all; j += 2 * kLanes) store(narrow_to_bf16(at(j), at(j + kLanes)), to + j / 2);
}

inline void pair_score_gradients(const kernels::BackwardTile& tile) noexcept {
  const std::int64_t all = round_up(tile.keys, kLanes);
  const WeightRows room{tile.room, tile.room + kBlockRows * tile.stride};
  for (std::int64_t r = 0; r < tile.rows; r += kBlockRows) {
    const std::int64_t rows = smaller(kBlockRows, tile.rows - r);
    TileKeys seen = differentiate_rows<BackwardPairs>(tile, r, rows, room);
    if (seen.first >= seen.last) seen = {0, 0};
    for (std::int64_t n = 0; n < rows; n += 2) {
      const WeightRows first = room.behind(n * tile.stride);
      const WeightRows second = n + 1 < rows ? first.behind(tile.stride) : WeightRows{nullptr, nullptr};
      const std::int64_t to = (r + n) / 2 * tile.stride;
      pair_rows_of_scores(first.weights, second.weights, seen, all, tile.weights + to);
      pair_rows_of_scores(first.gradients, second.gradients, seen, all, tile.score_gradients + to);
    }
    for (std::int64_t n = 0; n < rows; ++n) {
      pair_keys_of_scores(room.behind(n * tile.stride).gradients, seen, all,
                          tile.key_pair_gradients + (r + n) * (tile.stride / 2));
    }
  }
}

// Rows of the tensors, two to a word.
inline void pad_row_pairs(const kernels::Operand& from, std::int64_t rows, std::int64_t dim, float* to,
                          std::int64_t padded) noexcept {
  const auto* row = from.numbers<std::uint16_t>();
  for (std::int64_t r = 0; r < rows; r += 2, row += 2 * from.stride, to += padded) {
    for (std::int64_t d = 0; d < dim; d += kLanes) {
      const int count = static_cast<int>(smaller(kLanes, dim - d));
      Vec pair[1];
      if (count == kLanes) {
        load_value_pairs<false>(row + d, from.stride, count, true, r + 1 < rows, pair);
      } else {
        load_value_pairs<true>(row + d, from.stride, count, true, r + 1 < rows, pair);
      }
      store(pair[0], to + d);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
