// Weights and score gradients over tile registers, row by row: see amx_scores-inl.h.
//
// Rows of scores come from products with query rows as A and keys as B, as elsewhere, and become words of all keys.
// Rows of scores beyond 2²⁴, of which a block learns only as it meets them, are turned products.
#pragma once

#include "kernels/attention_backward/amx-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Where the words of an iteration go.
struct IterationWords {
  float* weights;
  float* gradients;
  std::int64_t row_words;
  float* pairs;
};

// Score gradients of keys 2n and 2n + 1, as words of rows.
HEADLIGHT_INLINE void put_gradients(const IterationWords& to, std::int64_t n, Vec first, Vec second) {
  float* const gradients = to.gradients + 2 * n * to.row_words;
  store(first, gradients);
  store(second, gradients + to.row_words);
  store(interleave_lower_bf16(first, second), to.pairs + n * kAmxWords);
  store(interleave_upper_bf16(first, second), to.pairs + kTileWords + n * kAmxWords);
}
// Both products of the rows from r on, kAtOnce of them, and the keys of [first, last), whole iterations.
inline void products_of_rows(const kernels::BackwardTile& tile, std::int64_t r, const TileKeys& keys,
                             const WeightRows& to) {
  const std::int64_t head_words = words_of(tile.head_dim), value_words = words_of(tile.value_dim);
  const auto multiply = [&](const float* rows, const float* panels, std::int64_t words, float* sums) {
    for (std::int64_t j = keys.first; j < keys.last; j += kAtOnce) {
      multiply_iterations<true, false>({rows + r * words, words, kAmxRows * words, kAmxWords},
                                       {panels + j * words, kAmxRows * words, kTileWords}, words / kAmxWords, sums + j,
                                       tile.stride);
    }
  };
  multiply(tile.query, tile.key_panels, head_words, to.weights);
  multiply(tile.out_gradient, tile.value_panels, value_words, to.gradients);
}

// The same from keys as rows.
inline void turned_products_of_rows(const kernels::BackwardTile& tile, std::int64_t r, const TileKeys& keys,
                                    const WeightRows& to) {
  for (std::int64_t j = keys.first; j < keys.last; j += kAtOnce) {
    products_of_iteration(tile, j, r, tile.room);
    for (std::int64_t at = 0; at < 2 * kSumsAtOnce; at += 2 * kTileWords) {
      float* const into = (at < kSumsAtOnce ? to.weights : to.gradients) + j + at / kAtOnce % kAtOnce;
      for (std::int64_t n = 0; n < kAtOnce; n += kLanes) {
        Vec square[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) square[i] = load(tile.room + at + n + i * kAtOnce);
        transpose(square);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) store(square[i], into + (n + i) * tile.stride);
      }
    }
  }
}

// Weights and score gradients of the rows from r on, as floats: rows of all keys, with zeros where nothing is seen.
inline void differentiate_rows_at_once(const kernels::BackwardTile& tile, std::int64_t r, const WeightRows& to) {
  const std::int64_t rows = smaller(kAtOnce, tile.rows - r), all = round_up(tile.keys, kAtOnce);
  const TileKeys seen = keys_that_are_seen(tile, r, rows);
  const std::int64_t first = seen.first / kAtOnce * kAtOnce, last = round_up(seen.last, kLanes);
  (tile.keys_are_rows ? turned_products_of_rows : products_of_rows)(tile, r, {first, round_up(last, kAtOnce)}, to);
  for (std::int64_t n = 0; n < kAtOnce; ++n) {
    const WeightRows row = to.behind(n * tile.stride);
    const bool is_there = n < rows && first < last;
    if (is_there) differentiate(tile, r + n, row, first, last);
    clear_vectors(row, 0, is_there ? first : all);
    clear_vectors(row, is_there ? last : all, all);
  }
}

// Such rows become words of all keys.
inline void turn_rows(const kernels::BackwardTile& tile, const TileRoom& room, std::int64_t r, const WeightRows& from) {
  // Words of two rows, of each key's 32 rows.
  const auto words_of_keys = [&](const float* rows, Vec(&keys)[kLanes]) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      const float* const row = rows + 2 * i * tile.stride;
      keys[i] = pair_to_bf16(load(row), load(row + tile.stride));
    }
    transpose(keys);
  };
  for (std::int64_t j = 0; j < round_up(tile.keys, kAtOnce); j += kLanes) {
    const std::int64_t words = j * room.row_words + r / 2;
    const IterationWords to{room.weights + words, room.gradients + words, room.row_words,
                            room.pairs_of(j, r) + j % kAtOnce / 2 * kAmxWords};
    Vec keys[kLanes];
    words_of_keys(from.weights + j, keys);
#pragma GCC unroll 16
    for (int n = 0; n < kLanes; ++n) store(keys[n], to.weights + n * to.row_words);
    words_of_keys(from.gradients + j, keys);
#pragma GCC unroll 8
    for (int n = 0; n < kLanes / 2; ++n) put_gradients(to, n, keys[2 * n], keys[2 * n + 1]);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
