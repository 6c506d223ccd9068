// Attention's backward pass over tile registers, bfloat16 by bfloat16: the products of a tile.
//
// Scores are computed turned over, Sᵀ = K Qᵀ and dPᵀ = V dOᵀ, with keys as rows of A as they lie. So a row of their
// sums is a key, and its lanes are query rows: rounded, two vectors of it are a row of A of the sums over rows, dV = Pᵀ
// dO and dK = dSᵀ Q, and those of two keys in turns are a row of B of the sum over keys, dQᵀ = Kᵀ dSᵀ. Nothing but dQ
// is turned back.
//
// With C ← C + (Σ of the first numbers of the pairs) + (Σ of the second) as tile_registers-inl.h says:
//   scores   over the numbers of a row, 32 at a time, from +0, as the forward pass adds them
//   dV, dK   over the rows of a sequence, 32 at a time, on and on: from block to block and from head to head
//   dQ       over the keys of a block, 32 at a time, from +0
// Iterations in which nothing is seen are left out, for they add +0, and what fills rows, keys and numbers up to whole
// iterations is zeros. Hidden numbers that are not finite are in the way of an iteration: see …_exactly().
#pragma once

#include "kernels/attention/amx_shapes.h"
#include "kernels/attention_backward/pairs-inl.h"
#include "kernels/square-inl.h"
#include "kernels/tile_registers-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr std::int64_t kAtOnce = 2 * kAmxRows;  // rows, keys, and numbers of a row
inline constexpr std::int64_t kTileWords = kAmxRows * kAmxWords;
inline constexpr std::int64_t kSumsAtOnce = kAtOnce * kAtOnce;
static_assert(kAtOnce == kernels::with_shapes_of_tile_registers({}).keys_at_once);

// Two tiles of A, one below the other, and two of B side by side; in floats.
struct LeftTiles {
  const float* at;
  std::int64_t stride;  // from row to row
  std::int64_t lower;
  std::int64_t advance;  // from iteration to iteration
};
struct RightTiles {
  const float* at;  // of 1 KiB each
  std::int64_t right;
  std::int64_t advance;
};

// sums[r · stride + j] ← (kAdd: what is there +) the products of `iterations` iterations; kRight: of two tiles of
// columns.
template <bool kRight, bool kAdd>
HEADLIGHT_INLINE void multiply_iterations(const LeftTiles& left, const RightTiles& right, std::int64_t iterations,
                                          float* sums, std::int64_t stride) {
  constexpr std::int64_t kRowBytes = 4 * kAmxWords;
  const std::int64_t a_bytes = 4 * left.stride, bytes = 4 * stride;
  const float *a = left.at, *b = right.at;
  write_memory();
  if constexpr (kAdd) {
    _tile_loadd(0, sums, bytes);
    if constexpr (kRight) _tile_loadd(1, sums + kAmxWords, bytes);
    _tile_loadd(2, sums + kAmxRows * stride, bytes);
    if constexpr (kRight) _tile_loadd(3, sums + kAmxRows * stride + kAmxWords, bytes);
  } else {
    _tile_zero(0);
    if constexpr (kRight) _tile_zero(1);
    _tile_zero(2);
    if constexpr (kRight) _tile_zero(3);
  }
  for (; iterations > 0; --iterations, a += left.advance, b += right.advance) {
    _tile_loadd(4, a, a_bytes);
    _tile_loadd(6, b, kRowBytes);
    HEADLIGHT_AMX_PRODUCT(0, 4, 6);
    if constexpr (kRight) {
      _tile_loadd(7, b + right.right, kRowBytes);
      HEADLIGHT_AMX_PRODUCT(1, 4, 7);
    }
    _tile_loadd(5, a + left.lower, a_bytes);
    HEADLIGHT_AMX_PRODUCT(2, 5, 6);
    if constexpr (kRight) HEADLIGHT_AMX_PRODUCT(3, 5, 7);
  }
  _tile_stored(0, sums, bytes);
  if constexpr (kRight) _tile_stored(1, sums + kAmxWords, bytes);
  _tile_stored(2, sums + kAmxRows * stride, bytes);
  if constexpr (kRight) _tile_stored(3, sums + kAmxRows * stride + kAmxWords, bytes);
  write_memory();
}

// Words of a row, filled up to whole iterations.
HEADLIGHT_INLINE std::int64_t words_of(std::int64_t dim) { return round_up(dim / 2, kAmxWords); }

// Where a tile's numbers of pairs lie. Weights and score gradients as rows of A are [keys][row_words] words of two
// query rows; score gradients as tiles of B [iterations of keys][row tiles] of sixteen pairs of keys.
struct TileRoom {
  std::int64_t row_words;
  float* weights;
  float* gradients;
  float* pairs;
  float* sums;  // [2][kAtOnce][kAtOnce]

  [[nodiscard]] HEADLIGHT_INLINE float* pairs_of(std::int64_t j, std::int64_t r) const {
    return pairs + (j / kAtOnce * (row_words / 8) + r / kAmxRows) * kTileWords;
  }
};
inline TileRoom room_of(const kernels::BackwardTile& tile) {
  const std::int64_t row_words = round_up(tile.rows, kAtOnce) / 2;
  return {row_words, tile.weights, tile.weights + row_words * round_up(tile.keys, kAtOnce), tile.key_pair_gradients,
          tile.room};
}

// Both products of the keys from j on and the rows from r on, kAtOnce of each: [keys][rows].
inline void products_of_iteration(const kernels::BackwardTile& tile, std::int64_t j, std::int64_t r, float* sums) {
  const std::int64_t head_words = words_of(tile.head_dim), value_words = words_of(tile.value_dim);
  const auto multiply = [&](const float* keys, const float* rows, std::int64_t words, float* to) {
    multiply_iterations<true, false>({keys + j * words, words, kAmxRows * words, kAmxWords},
                                     {rows + r * words, kAmxRows * words, kTileWords}, words / kAmxWords, to, kAtOnce);
  };
  multiply(tile.key_panels, tile.query, head_words, sums);
  multiply(tile.value_panels, tile.out_gradient, value_words, sums + kSumsAtOnce);
}

// Rows of queries or output gradients of a block for the sums over them, as pack_values() leaves them: the iterations
// from row `first` on, the columns from `column` on.
HEADLIGHT_INLINE RightTiles rows_of_sums(const kernels::BackwardTile& tile, const float* rows, std::int64_t first,
                                         std::int64_t column) {
  const std::int64_t panel = round_up(tile.rows, kAtOnce) / 2 * kAmxWords;
  return {rows + column / kAmxWords * panel + first / 2 * kAmxWords, panel, kTileWords};
}

// Two tiles of B, or one, of which a row that does not see the key is zeros: 0 · NaN is NaN.
template <bool kRight>
void take_seen_rows(const kernels::BackwardTile& tile, const RightTiles& from, std::int64_t key, std::int64_t first,
                    float* to) {
  for (std::int64_t pair = 0; pair < kAmxRows; ++pair) {
    const std::int64_t r = first + 2 * pair;
    const IntVec seen =
        broadcast_int(seen_halves(r < tile.rows && sees(tile, r, key), r + 1 < tile.rows && sees(tile, r + 1, key)));
    for (int d = 0; d < (kRight ? 2 : 1); ++d) {
      const Vec words = load(from.at + d * from.right + pair * kAmxWords);
      store(as_float(and_int(as_int(words), seen)), to + d * kTileWords + pair * kAmxWords);
    }
  }
}

// Some rows of sums, of one vector or two.
template <bool kRight>
HEADLIGHT_INLINE void copy_sums(const float* from, std::int64_t from_stride, std::int64_t rows, float* to,
                                std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (int d = 0; d < (kRight ? 2 : 1); ++d)
      store(load(from + r * from_stride + d * kLanes), to + r * stride + d * kLanes);
  }
}

// c[j …] += Σ x y over `iterations` iterations of rows from `first` on; x those of the keys from j on, which end with
// the tile's. room: [2][kAtOnce][kAtOnce].
template <bool kRight>
void sum_over_iterations(const kernels::BackwardTile& tile, LeftTiles x, RightTiles y, std::int64_t j,
                         std::int64_t first, std::int64_t iterations, const kernels::Rows<float>& c,
                         std::int64_t column, float* room) {
  const std::int64_t keys = smaller(kAtOnce, tile.keys - j);
  float* const to = c.row(j) + column;
  if (!tile.exactly && keys == kAtOnce) return multiply_iterations<kRight, true>(x, y, iterations, to, c.stride);
  copy_sums<kRight>(to, c.stride, keys, room, kAtOnce);
  if (!tile.exactly) {
    multiply_iterations<kRight, true>(x, y, iterations, room, kAtOnce);
    return copy_sums<kRight>(room, kAtOnce, keys, to, c.stride);
  }
  // A key at a time, whose sums alone are kept.
  float* const seen = room + kSumsAtOnce;
  for (std::int64_t k = 0; k < keys; ++k) {
    LeftTiles a = x;
    RightTiles b = y;
    for (std::int64_t n = 0; n < iterations; ++n, a.at += a.advance, b.at += b.advance) {
      take_seen_rows<kRight>(tile, b, j + k, first + n * kAtOnce, seen);
      multiply_iterations<kRight, true>(a, {seen, kTileWords, 0}, 1, room, kAtOnce);
    }
    copy_sums<kRight>(room + k * kAtOnce, kAtOnce, 1, to + k * c.stride, c.stride);
    if (k + 1 < keys) copy_sums<kRight>(to + (k + 1) * c.stride, c.stride, 1, room + (k + 1) * kAtOnce, kAtOnce);
  }
}

// Of the keys from j on, with the weights and score gradients of the rows [first, last), whole iterations.
inline void add_key_value_gradients(const kernels::BackwardTile& tile, const TileRoom& room, std::int64_t j,
                                    std::int64_t first, std::int64_t last, const float* weights,
                                    const float* gradients) {
  const auto add = [&](const float* x, const float* y, std::int64_t padded, const kernels::Rows<float>& c) {
    if (c.data == nullptr) return;
    const LeftTiles a{x + first / 2, room.row_words, kAmxRows * room.row_words, kAmxWords};
    for (std::int64_t column = 0; column < padded; column += kAtOnce) {
      const RightTiles b = rows_of_sums(tile, y, first, column);
      const auto sum = column + kAmxWords < padded ? &sum_over_iterations<true> : &sum_over_iterations<false>;
      sum(tile, a, b, j, first, (last - first) / kAtOnce, c, column, room.sums);
    }
  };
  add(weights, tile.out_gradient_of_sums, tile.padded_value_dim, tile.value_gradient);
  add(gradients, tile.query_of_sums, tile.padded_head_dim, tile.key_gradient);
}

// The place among the rows of an iteration of column c of its `half`, as interleave_…_bf16() leaves them.
HEADLIGHT_INLINE std::int64_t row_of_column(std::int64_t half, std::int64_t c) { return c / 4 * 8 + half * 4 + c % 4; }

// dQ of the rows from r on and the numbers from d on ← scale · sums + what is there; sums [kAtOnce numbers][kAtOnce
// rows].
inline void give_query_gradient(const kernels::BackwardTile& tile, std::int64_t r, std::int64_t d, const float* sums) {
  const Vec scale = broadcast(tile.scale);
  for (std::int64_t n = 0; n < kAtOnce && d + n < tile.head_dim; n += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, tile.head_dim - d - n));
    for (int half = 0; half < 2; ++half) {
      Vec square[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) square[i] = load(sums + (n + i) * kAtOnce + half * kLanes);
      transpose(square);
#pragma GCC unroll 16
      for (int c = 0; c < kLanes; ++c) {
        const std::int64_t row = r + row_of_column(half, c);
        if (row >= tile.rows) continue;
        float* const to = tile.query_gradient.row(row) + d + n;
        store_lanes(fma(square[c], scale, load_lanes(to, count)), to, count);
      }
    }
  }
}

// The same of one row, without the keys that it does not see. room: [2][kAtOnce][kAtOnce].
inline void query_gradient_exactly(const kernels::BackwardTile& tile, LeftTiles a, RightTiles b, std::int64_t row,
                                   std::int64_t d, std::int64_t first, std::int64_t iterations, float* room) {
  float* const seen = room + kSumsAtOnce;
  for (std::int64_t i = 0; i < kSumsAtOnce; i += kLanes) store(zero(), room + i);
  for (std::int64_t n = 0; n < iterations; ++n, a.at += a.advance, b.at += b.advance) {
    std::int32_t halves[kAmxWords];
    for (std::int64_t pair = 0; pair < kAmxWords; ++pair) {
      const std::int64_t j = first + n * kAtOnce + 2 * pair;
      halves[pair] = seen_halves(j < tile.keys && sees(tile, row, j), j + 1 < tile.keys && sees(tile, row, j + 1));
    }
    float mask[kAmxWords];
    __builtin_memcpy(mask, halves, sizeof(mask));
    for (std::int64_t i = 0; i < 2 * kTileWords; i += kLanes)
      store(as_float(and_int(as_int(load(a.at + i)), as_int(load(mask)))), seen + i);
    multiply_iterations<true, true>({seen, kAmxWords, kTileWords, 0}, b, 1, room, kAtOnce);
  }
  std::int64_t column = 0;
  while (row_of_column(column / kAmxWords, column % kAmxWords) != row % kAtOnce) ++column;
  float* const to = tile.query_gradient.row(row) + d;
  for (std::int64_t i = 0; i < smaller(kAtOnce, tile.head_dim - d); ++i)
    to[i] = __builtin_fmaf(room[i * kAtOnce + column], tile.scale, to[i]);
}

inline void tile_query_gradient(const kernels::BackwardTile& tile) noexcept {
  AmxRegisters registers;
  registers.configure(kAtOnce);
  const TileRoom room = room_of(tile);
  const std::int64_t number_tiles = round_up(tile.head_dim, kAtOnce) / kAmxRows;
  const std::int64_t row_tiles = room.row_words / 8;
  for (std::int64_t r = 0; r < tile.rows; r += kAtOnce) {
    const TileKeys keys = keys_that_are_seen(tile, r, smaller(kAtOnce, tile.rows - r));
    if (keys.first >= keys.last) continue;
    const std::int64_t first = keys.first / kAtOnce * kAtOnce, iterations = divide_up(keys.last - first, kAtOnce);
    const RightTiles b{room.pairs_of(first, r), kTileWords, row_tiles * kTileWords};
    for (std::int64_t d = 0; d < tile.head_dim; d += kAtOnce) {
      const LeftTiles a{tile.key + (first / kAtOnce * number_tiles + d / kAmxRows) * kTileWords, kAmxWords, kTileWords,
                        number_tiles * kTileWords};
      if (tile.exactly) {
        for (std::int64_t row = r; row < smaller(r + kAtOnce, tile.rows); ++row)
          query_gradient_exactly(tile, a, b, row, d, first, iterations, room.sums);
        continue;
      }
      multiply_iterations<true, false>(a, b, iterations, room.sums, kAtOnce);
      give_query_gradient(tile, r, d, room.sums);
    }
  }
}

// Keys as the sum over them takes them: [iterations of keys][⌈dim / 32⌉ · 2] tiles of sixteen numbers by sixteen pairs
// of keys, zeros where there is none.
inline void take_turned_keys(const kernels::Operand& from, std::int64_t keys, std::int64_t dim, float* to,
                             std::int64_t) noexcept {
  const auto* const numbers = from.numbers<std::uint16_t>();
  for (std::int64_t j = 0; j < keys; j += kAtOnce) {
    for (std::int64_t d = 0; d < round_up(dim, kAtOnce); d += kLanes, to += kTileWords) {
      const int count = static_cast<int>(larger(0, smaller(kLanes, dim - d)));
      Vec square[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        const std::int64_t key = j + 2 * i;
        const std::uint16_t* const at = numbers + key * from.stride + d;
        Vec pair[1];
        if (count == kLanes && key + 1 < keys) {
          load_value_pairs<false>(at, from.stride, count, true, true, pair);
        } else {
          load_value_pairs<true>(at, from.stride, count, key < keys && count > 0, key + 1 < keys && count > 0, pair);
        }
        square[i] = pair[0];
      }
      transpose(square);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(square[i], to + i * kAmxWords);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
