// Tiles of C by instructions that multiply two rows of A by two columns of B, eight bytes along K of each, as Arm's
// smmla and bfmmla do. The four sums are a vector, a quad:
//
//   a_r   (eight bytes)   b_j   (eight bytes)     c_r,j      c_r,j+1
//   a_r+1 (eight bytes)   b_j+1 (eight bytes)     c_r+1,j    c_r+1,j+1
//
// B lies in the panels of its instruction set, four bytes of a column in a word, for a PackedMatrix is used by engines
// with the feature and without: so an iteration interleaves two rows of words as it reads them. Of a tile of 12 × 8
// sums that is 4 loads and 4 interleavings of B beside 6 pairs of rows and 24 products; with dot products, 48 of them,
// 4 loads of B and 24 of A. An odd word at the end of K, and a row alone, are multiplied by dot products, to the same
// bits.
#pragma once

#include <cstdint>

#include "kernels/gemm/tile-inl.h"
#include "kernels/tile-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Rows of A two by two; of an odd number the last stands for the one that lacks, whose sums nobody reads.
template <int kRows>
struct RowPairs {
  static constexpr int kPairs = divide_up(kRows, 2);
  const float* rows[2 * kPairs];

  HEADLIGHT_INLINE explicit RowPairs(const TileRows& a) {
#pragma GCC unroll 12
    for (int r = 0; r < 2 * kPairs; ++r) rows[r] = a.at + (r < kRows ? r : kRows - 1) * a.stride;
  }
  // Words k and k + 1 of both; word k alone, twice.
  HEADLIGHT_INLINE Vec two_words(int pair, std::int64_t k) const {
    return load_two_of_each(rows[2 * pair] + k, rows[2 * pair + 1] + k);
  }
  HEADLIGHT_INLINE Vec one_word(int pair, std::int64_t k) const {
    return lower_halves(broadcast(rows[2 * pair][k]), broadcast(rows[2 * pair + 1][k]));
  }
};

// The sums of kRows rows of kVectors vectors, of which two rows of a vector of columns are two quads.
template <int kRows, int kVectors>
struct QuadSums {
  static constexpr int kPairs = divide_up(kRows, 2);
  Vec quads[kPairs][2 * kVectors];

  HEADLIGHT_INLINE void set(const Vec (&rows)[kRows][kVectors]) {
#pragma GCC unroll 6
    for (int pair = 0; pair < kPairs; ++pair) {
      const int second = 2 * pair + 1 < kRows ? 2 * pair + 1 : 2 * pair;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        quads[pair][2 * v] = lower_halves(rows[2 * pair][v], rows[second][v]);
        quads[pair][2 * v + 1] = upper_halves(rows[2 * pair][v], rows[second][v]);
      }
    }
  }
  HEADLIGHT_INLINE void get(Vec (&rows)[kRows][kVectors]) const {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Vec left = quads[r / 2][2 * v], right = quads[r / 2][2 * v + 1];
        rows[r][v] = r % 2 == 0 ? lower_halves(left, right) : upper_halves(left, right);
      }
    }
  }

  // Two words of A and of each column; then one.
  template <class B>
  HEADLIGHT_INLINE void add_two_words(const RowPairs<kRows>& a, B& b, std::int64_t k) {
    Vec first[kVectors], second[kVectors], right[2 * kVectors];
    b.template load<kRows>(first, 0);
    b.template load<kRows>(second, 1);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      right[2 * v] = interleave_lower(first[v], second[v]);
      right[2 * v + 1] = interleave_upper(first[v], second[v]);
    }
#pragma GCC unroll 6
    for (int pair = 0; pair < kPairs; ++pair) {
      const Vec left = a.two_words(pair, k);
#pragma GCC unroll 16
      for (int c = 0; c < 2 * kVectors; ++c) {
        quads[pair][c] = in_order(B::multiply_quads(left, right[c], quads[pair][c]));
      }
    }
  }
  template <class B>
  HEADLIGHT_INLINE void add_one_word(const RowPairs<kRows>& a, B& b, std::int64_t k) {
    Vec words[kVectors];
    b.template load<kRows>(words, 0);
#pragma GCC unroll 6
    for (int pair = 0; pair < kPairs; ++pair) {
      const Vec left = a.one_word(pair, k);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        Vec(&of_pair)[2 * kVectors] = quads[pair];
        of_pair[2 * v] = in_order(B::multiply_add(left, lower_halves(words[v], words[v]), of_pair[2 * v]));
        of_pair[2 * v + 1] = in_order(B::multiply_add(left, upper_halves(words[v], words[v]), of_pair[2 * v + 1]));
      }
    }
  }
};

// As RegisterTile, which has the rows that are alone.
template <class B, class Finish>
struct QuadTile {
  TileRows a;
  B b;
  std::int64_t depth;  // words of A
  Finish finish;

  template <int kRows, int kVectors>
  static void run(const QuadTile& tile) noexcept {
    static_assert(B::kIterations == 2);
    if constexpr (kRows == 1) {
      using Row = RegisterTile<TileRows, B, Finish>;
      Row::template run<1, kVectors>(Row{tile.a, tile.b, tile.depth, tile.finish});
    } else {
      QuadSums<kRows, kVectors> sums;
      clear_sums(sums.quads);
      const RowPairs<kRows> a(tile.a);
      B b = tile.b;
      const std::int64_t depth = tile.depth;
      std::int64_t k = 0;
      for (; k + 2 <= depth; k += 2) sums.add_two_words(a, b, k);
      if (k < depth) sums.add_one_word(a, b, k);
      Vec rows[kRows][kVectors];
      sums.get(rows);
      tile.finish.end(tile.a, tile.b, rows);
    }
  }
};

}  // namespace headlight::HEADLIGHT_TARGET
