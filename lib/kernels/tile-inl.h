// The register tile that every product is made of.
//
//   sum(r, j) = Σ_k a(r, k) · b(k, j)        r < kRows,  j < kVectors · kLanes
//
// A step of k loads kVectors vectors of B and broadcasts an element of A for each row. All sums stay in registers, and
// each is one chain of multiply-adds over ascending k, so its bits do not depend on how many rows and vectors there are
// beside it. What the operands are made of and where the sums go is known to three parts alone:
//
//   A       a(r, k), the same in all lanes. Reader<kRows>: reader(r, k).
//   B       b(k, ·) by vectors. b.next<kRows>(vectors) loads those of a step and goes on to the next.
//   Finish  what the sums start from, and what becomes of them: finish.start(a, b, sums), finish.end(a, b, sums).
//
// Only A and B know what a step is; here it is one float of k. Operands that multiply two or four elements of k at once
// count steps of so many and overload fma(); those that are stored narrow are widened by next().
#pragma once

#include <cstdint>
#include <utility>

#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr std::int64_t kFloatsOfLine = 16;  // of a cache line

// One pointer serves three rows: row, stride and twice the stride are addressing modes, a pointer for each row is too
// many registers (clang spills).
inline constexpr int kRowsOfPointer = 3;

// a(r, k) = at[r · stride + k].
struct TileRows {
  const float* at;
  std::int64_t stride;

  template <int kRows>
  struct Reader {
    static constexpr int kPointers = divide_up(kRows, kRowsOfPointer);
    const float* rows[kPointers];
    std::int64_t stride;

    HEADLIGHT_INLINE explicit Reader(const TileRows& a) : stride(a.stride) {
#pragma GCC unroll 6
      for (int p = 0; p < kPointers; ++p) rows[p] = a.at + p * kRowsOfPointer * stride;
    }
    HEADLIGHT_INLINE Vec operator()(int row, std::int64_t k) const {
      return broadcast(rows[row / kRowsOfPointer][row % kRowsOfPointer * stride + k]);
    }
  };
};

// a(r, k) = at[k · stride + r].
struct TileColumns {
  const float* at;
  std::int64_t stride;

  template <int kRows>
  struct Reader {
    const float* at;
    std::int64_t stride;

    HEADLIGHT_INLINE explicit Reader(const TileColumns& a) : at(a.at), stride(a.stride) {}
    HEADLIGHT_INLINE Vec operator()(int row, std::int64_t k) const { return broadcast(at[k * stride + row]); }
  };
};

// b(k, j) = at[k · stride + j]: a packed panel, or rows of memory that hold whole vectors.
struct TileVectors {
  const float* at;
  std::int64_t stride;

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void next(Vec (&to)[kVectors]) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) to[v] = load(at + v * kLanes);
    at += stride;
  }
};

// The same where they lie, out of every cache perhaps: tiles of at most kAskingRows rows ask for a row of memory from
// `soon` on at each step, and go on by `stride` there, too. kPartial: the last vector ends after `lanes`.
template <bool kPartial, int kAskingRows>
struct TileMemory {
  const float* at;
  std::int64_t stride;
  const float* soon;
  int lanes;

  template <int kVectors>
  HEADLIGHT_INLINE void row(std::int64_t k, Vec (&to)[kVectors]) const {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const float* vector = at + k * stride + v * kLanes;
      to[v] = kPartial && v == kVectors - 1 ? load_partial(vector, lanes) : load(vector);
    }
  }
  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void next(Vec (&to)[kVectors]) {
    row(0, to);
    at += stride;
    if constexpr (kRows <= kAskingRows) {
#pragma GCC unroll 8
      for (int d = 0; d < kVectors * kLanes; d += kFloatsOfLine) __builtin_prefetch(soon + d);
      soon += stride;
    }
  }
};

template <int kRows, int kVectors>
HEADLIGHT_INLINE void clear_sums(Vec (&sums)[kRows][kVectors]) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) sums[r][v] = zero();
  }
}

template <class A, class B, int kRows, int kVectors>
HEADLIGHT_INLINE void tile_step(const A& a, B& b, std::int64_t k, Vec (&sums)[kRows][kVectors]) {
  Vec right[kVectors];
  b.template next<kRows>(right);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const Vec left = a(r, k);
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(left, right[v], sums[r][v]);
  }
}

template <class A, class B, class Finish>
struct RegisterTile {
  A a;
  B b;
  std::int64_t depth;  // steps of k
  Finish finish;

  template <int kRows, int kVectors>
  static void run(const RegisterTile& tile) noexcept {
    Vec sums[kRows][kVectors];
    tile.finish.start(tile.a, tile.b, sums);
    const typename A::template Reader<kRows> a(tile.a);
    B b = tile.b;
    const std::int64_t depth = tile.depth;
    // The pragma has the loop unrolled late. Steps written out one after another are taken for one expression: g++ 12
    // puts multiply-adds off, and spills. Of many sums, two steps hide what the loop itself takes.
    if constexpr (kRows * kVectors <= 12) {
#pragma GCC unroll 4
      for (std::int64_t k = 0; k < depth; ++k) tile_step(a, b, k, sums);
    } else {
#pragma GCC unroll 2
      for (std::int64_t k = 0; k < depth; ++k) tile_step(a, b, k, sums);
    }
    tile.finish.end(tile.a, tile.b, sums);
  }
};

template <class Tile>
using TileFunction = void (*)(const Tile&) noexcept;

template <class Tile, int kMostRows, class Shapes>
struct TileTable;
template <class Tile, int kMostRows, int... kShapes>
struct TileTable<Tile, kMostRows, std::integer_sequence<int, kShapes...>> {
  static constexpr TileFunction<Tile> kTiles[] = {
      &Tile::template run<kShapes % kMostRows + 1, kShapes / kMostRows + 1>...};
};

// The tile for 1 … kMostRows rows of 1 … kMostVectors vectors.
template <int kMostRows, int kMostVectors, class Tile>
HEADLIGHT_INLINE TileFunction<Tile> tile_of(std::int64_t rows, std::int64_t vectors) {
  using Shapes = std::make_integer_sequence<int, kMostRows * kMostVectors>;
  return TileTable<Tile, kMostRows, Shapes>::kTiles[(vectors - 1) * kMostRows + rows - 1];
}

}  // namespace headlight::HEADLIGHT_TARGET
