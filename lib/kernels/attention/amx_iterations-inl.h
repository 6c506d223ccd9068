// Products of tile registers, cut so small that they run beside vectors.
//
// A core overlaps what its reorder buffer holds at a time: products run beneath vector operations only where both come
// in turns much shorter than that, and stored sums want turns, too. So an iteration, 2 × 2 tiles, is four parts of one
// product each, and a part that begins a sum first stores what its register held. Vectors are worked on between the
// parts by whoever is given the iterations; see amx_softmax-inl.h.
#pragma once

#include "kernels/attention/amx-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Sums of 2 × 2 tiles, and where they go.
struct TileSums {
  float* at;  // null: nowhere
  std::int64_t stride;
};

// An iteration's operands stay in memory: what all parts want in registers would be moved to and from those of vectors.
template <class Iteration>
HEADLIGHT_INLINE void keep_in_memory(Iteration& iteration) {
  asm volatile("" : : "r"(&iteration) : "memory");
}

// Sums in registers 0 1 over 2 3, A in 4 over 5, B in 6 and 7: sixteen words of 32 rows and of 32 columns. The first
// iteration of a sum stores the sums before it.
struct TileIteration {
  const float* a;
  std::int64_t a_stride;
  const float* left;  // tiles of B
  const float* right;
  bool is_first;
  TileSums before;
};

template <int kTile>
HEADLIGHT_INLINE void store_tile(const TileSums& sums) {
  float* const at = sums.at + kTile / 2 * kAmxRows * sums.stride + kTile % 2 * kAmxWords;
  const std::int64_t bytes = sums.stride * 4;
  if constexpr (kTile == 0) _tile_stored(0, at, bytes);
  if constexpr (kTile == 1) _tile_stored(1, at, bytes);
  if constexpr (kTile == 2) _tile_stored(2, at, bytes);
  if constexpr (kTile == 3) _tile_stored(3, at, bytes);
}

template <int kTile>
HEADLIGHT_INLINE void clear_tile() {
  if constexpr (kTile == 0) _tile_zero(0);
  if constexpr (kTile == 1) _tile_zero(1);
  if constexpr (kTile == 2) _tile_zero(2);
  if constexpr (kTile == 3) _tile_zero(3);
}

// Packed keys and values pass by with a hint not to keep them: the first cache level has just room for the scores.
template <int kPart>
HEADLIGHT_INLINE void run_part(const TileIteration& iteration) {
  constexpr std::int64_t kRowBytes = 4 * kAmxWords;
  if (iteration.is_first) {
    if (iteration.before.at != nullptr) store_tile<kPart>(iteration.before);
    clear_tile<kPart>();
  }
  if constexpr (kPart == 0) {
    _tile_stream_loadd(6, iteration.left, kRowBytes);
    _tile_loadd(4, iteration.a, iteration.a_stride * 4);
    HEADLIGHT_AMX_PRODUCT(0, 4, 6);
  } else if constexpr (kPart == 1) {
    _tile_stream_loadd(7, iteration.right, kRowBytes);
    HEADLIGHT_AMX_PRODUCT(1, 4, 7);
  } else if constexpr (kPart == 2) {
    _tile_loadd(5, iteration.a + kAmxRows * iteration.a_stride, iteration.a_stride * 4);
    HEADLIGHT_AMX_PRODUCT(2, 5, 6);
  } else {
    HEADLIGHT_AMX_PRODUCT(3, 5, 7);
  }
  write_memory();
}

// The last sums, as an iteration of its own.
template <int kPart>
HEADLIGHT_INLINE void run_part(const TileSums& sums) {
  store_tile<kPart>(sums);
  write_memory();
}

// Iterations with nothing beside them.
struct Nothing {
  template <class Iteration>
  HEADLIGHT_INLINE void beside(const Iteration& iteration) const {
    run_part<0>(iteration);
    run_part<1>(iteration);
    run_part<2>(iteration);
    run_part<3>(iteration);
  }
};

// Scores of 32 rows and `keys` keys, whole iterations: query · key.
struct ScoreIterations {
  const float* query;  // rows of `words` words, side by side
  std::int64_t words;
  const float* panels;
  std::int64_t keys;
  TileSums scores;

  [[nodiscard]] HEADLIGHT_INLINE std::int64_t count() const { return keys / kKeysAtOnce * (words / kAmxWords) + 1; }

  template <class Vectors>
  HEADLIGHT_INLINE void run(Vectors& vectors) const {
    if (keys == 0) return;
    TileIteration iteration{query, words, panels, panels + words * kAmxWords, true, {nullptr, scores.stride}};
    keep_in_memory(iteration);
#pragma GCC unroll 1
    for (std::int64_t j = 0; j < keys; j += kKeysAtOnce) {
      iteration.a = query;
      iteration.is_first = true;
#pragma GCC unroll 1
      for (std::int64_t d = 0; d < words; d += kAmxWords) {
        vectors.beside(iteration);
        iteration.is_first = false;
        iteration.a += kAmxWords;
        iteration.left += kTileFloats;
        iteration.right += kTileFloats;
      }
      iteration.left = iteration.right;
      iteration.right += words * kAmxWords;
      iteration.before.at = scores.at + j;
    }
    vectors.beside(iteration.before);
  }
};

// Sums of values of 32 rows over `keys` keys, whole iterations: weights · values.
struct ValueIterations {
  const float* weights;
  std::int64_t weights_stride;
  const float* panel;  // of the first sixteen columns, from the first key on
  std::int64_t panel_stride;
  std::int64_t panels;
  std::int64_t keys;
  TileSums sums;

  [[nodiscard]] HEADLIGHT_INLINE std::int64_t count() const { return keys / kKeysAtOnce * divide_up(panels, 2) + 1; }

  template <class Vectors>
  HEADLIGHT_INLINE void run(Vectors& vectors) const {
    if (keys == 0) return;
    TileIteration iteration{weights, weights_stride, panel, panel, true, {nullptr, sums.stride}};
    keep_in_memory(iteration);
#pragma GCC unroll 1
    for (std::int64_t p = 0; p < panels; p += 2) {
      iteration.a = weights;
      iteration.left = panel + p * panel_stride;
      iteration.right =
          p + 1 < panels ? iteration.left + panel_stride : iteration.left;  // nobody reads what an odd one gives
      iteration.is_first = true;
#pragma GCC unroll 1
      for (std::int64_t j = 0; j < keys; j += kKeysAtOnce) {
        vectors.beside(iteration);
        iteration.is_first = false;
        iteration.a += kAmxWords;
        iteration.left += kTileFloats;
        iteration.right += kTileFloats;
      }
      iteration.before.at = sums.at + p * kAmxWords;
    }
    vectors.beside(iteration.before);
  }
};

}  // namespace headlight::HEADLIGHT_TARGET
