// The register tile that every product is made of.
//
//   sum(r, j) = Σ_k a(r, k) · b(k, j)        r < kRows,  j < kVectors · kLanes
//
// An iteration over k loads kVectors vectors of B and broadcasts an element of A for each row. All sums stay in
// registers, and each is one chain of multiply-adds over ascending k, so its bits do not depend on how many rows and
// vectors there are beside it. What the operands are made of and where the sums go is known to three parts alone:
//
//   A       a(r, k), the same in all lanes. Reader<kRows>: reader(r, k).
//   B       b(k, ·) by vectors. b.load<kRows>(vectors, iteration), once for each iteration over k in ascending order,
//           gives its vectors and goes on to the next one; `iteration` is k mod B::kIterations, which the compiler
//           knows.
//   Finish  what becomes of the sums: finish.end(a, b, sums); and, unless from zeros, what they start from:
//           finish.start(a, b, sums).
//
// Only A and B know what an iteration is; here it is one float of k. A B whose iterations multiply several numbers of k
// at once has a multiply_add() of its own for them; one whose numbers are narrow widens them in load(), B::kWidens, and
// may take the second number of two first: B::kSecondFirst, with two iterations.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/numbers-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

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
  using Reader = TileColumns;

  HEADLIGHT_INLINE Vec operator()(int row, std::int64_t k) const { return broadcast(at[k * stride + row]); }
};

// b(k, j) = at[k · stride + j]: a packed panel, or rows of memory that hold whole vectors.
struct TileVectors {
  const float* at;
  std::int64_t stride;

  static constexpr int kIterations = 1;

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void load(Vec (&to)[kVectors], int) {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) to[v] = headlight::HEADLIGHT_TARGET::load(at + v * kLanes);
    at += stride;
  }
};

// The same where B lies, out of every cache perhaps: with kAsks each iteration asks for what lies `ahead` bytes behind
// it, in the second cache level. That is mostly another head's rows, and before their turn comes more has passed than
// the first level holds, or than it has room for in the few sets that rows a power of two apart share: lines asked for
// there are gone again, and kept others waiting. Rows of narrower numbers `in_one_piece` are asked for in the first
// level too.
// kPartial: the last vector ends after `lanes`.
template <bool kPartial, bool kAsks, class Numbers = StoredFloat32>
struct TileMemory {
  using Storage = typename Numbers::Storage;
  const Storage* at;
  std::int64_t stride;
  std::intptr_t ahead;  // and no pointer that goes on by itself: in a loop of 2 × 2 sums that is an instruction of 15
  int lanes;
  bool in_one_piece = false;

  static constexpr int kIterations = 1;

  // b(k, ·), wherever the iterations stand.
  template <int kVectors>
  HEADLIGHT_INLINE void row(std::int64_t k, Vec (&to)[kVectors]) const {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Storage* from = at + k * stride + v * kLanes;
      to[v] = kPartial && v == kVectors - 1 ? Numbers::load_partial(from, lanes) : Numbers::load(from);
    }
  }

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void load(Vec (&to)[kVectors], int) {
    row(0, to);
    const auto here = reinterpret_cast<std::intptr_t>(at);
    at += stride;
    if constexpr (kAsks) {
      // What this iteration reads goes before what is asked for. Mixed, as g++ would have them, decoding is slower.
      std::intptr_t next = here + ahead;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) next = behind_load(next, to[v]);
      const auto line = [&](int v) {
        return reinterpret_cast<const void*>(next + v * static_cast<int>(sizeof(Storage)));
      };
      if (sizeof(Storage) < sizeof(float) && in_one_piece) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors * kLanes; v += Numbers::kOfLine) __builtin_prefetch(line(v));
      } else {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors * kLanes; v += Numbers::kOfLine) __builtin_prefetch(line(v), 0, 2);
      }
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

// A sum stays in its register, and iterations are done in the order in which they are written. Of the 9 × 3 sums of a
// product of matrices g++ 12 would otherwise put some where an operand was and spill others. With sixteen registers
// that is so where B is widened on the way, while float32 loses by it, and so does one row with clang.
template <class B, int kRows>
inline constexpr bool kKeepsSums = B::kIterations > 1 &&
                                   (kValues.keeps_all_sums || (kRows > 1 && requires { B::kWidens; }));

// sum + left · right, in what an iteration of B multiplies.
template <class B>
HEADLIGHT_INLINE Vec add_product(Vec left, Vec right, Vec sum) {
  if constexpr (requires { B::multiply_add(left, right, sum); }) {
    return B::multiply_add(left, right, sum);
  } else {
    return fma(left, right, sum);
  }
}

template <class A, class B, int kRows, int kVectors>
HEADLIGHT_INLINE void tile_iteration(const A& a, B& b, std::int64_t k, int iteration, Vec (&sums)[kRows][kVectors]) {
  Vec right[kVectors];
  b.template load<kRows>(right, iteration);
  if constexpr (requires { B::kSecondFirst; }) iteration = 1 - iteration;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const Vec left = a(r, k + iteration);
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = add_product<B>(left, right[v], sums[r][v]);
      if constexpr (kKeepsSums<B, kRows>) keep_in_register(sums[r][v]);
    }
  }
}

template <class A, class B, class Finish>
struct RegisterTile {
  A a;
  B b;
  std::int64_t depth;  // iterations over k
  Finish finish;

  template <int kRows, int kVectors>
  static void run(const RegisterTile& tile) noexcept {
    Vec sums[kRows][kVectors];
    if constexpr (requires { tile.finish.start(tile.a, tile.b, sums); }) {
      tile.finish.start(tile.a, tile.b, sums);
    } else {
      clear_sums(sums);
    }
    const typename A::template Reader<kRows> a(tile.a);
    B b = tile.b;
    const std::int64_t depth = tile.depth;
    std::int64_t k = 0;
    if constexpr (B::kIterations > 1) {
      for (; k + B::kIterations <= depth; k += B::kIterations) {
#pragma GCC unroll 16
        for (int iteration = 0; iteration < B::kIterations; ++iteration) tile_iteration(a, b, k, iteration, sums);
      }
      if (k < depth) {
#pragma GCC unroll 16
        for (int iteration = 0; iteration < B::kIterations - 1; ++iteration) {
          if (k + iteration < depth) tile_iteration(a, b, k, iteration, sums);
        }
      }
    } else if constexpr ((kRows * kVectors > 8 && kRows * kVectors <= 12) || kRows * kVectors == 24) {
      // The pragma has the loop unrolled late. Iterations written out one after another are taken for one expression:
      // g++ 12 puts multiply-adds off, and spills. Of other many sums, two iterations hide what the loop itself takes,
      // and tiles of few are often short.
#pragma GCC unroll 4
      for (; k < depth; ++k) tile_iteration(a, b, k, 0, sums);
    } else {
#pragma GCC unroll 2
      for (; k < depth; ++k) tile_iteration(a, b, k, 0, sums);
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
