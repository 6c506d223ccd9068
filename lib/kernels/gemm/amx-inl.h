// Tiles of C in the tile registers of AMX (kernels/tile_registers-inl.h).
//
// Four hold sums, 32 rows by 32 columns; two hold A and two B. A step of K multiplies sixteen words of it: 32 numbers
// of bfloat16, or 64 of int8. Its tile of A is so many words of sixteen rows, as rounded rows hold them, and its tile
// of B sixteen words of K of sixteen columns, as panels hold them: both are loaded as they lie. Where K ends within a
// step, what there is of it is copied, with zeros behind it, for a tile of A or B is all read.
//
// There is a load for each product of tiles. A load from the first-level cache is shorter than the product, one from
// the second or third longer. So a pair of tiles of columns of B stays in the first for all rows of a block, A passes
// by with a hint not to keep it, and what comes next of B and C is fetched meanwhile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/gemm/tile-inl.h"
#include "kernels/tile_registers-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

template <class B, class Finish>
struct AmxTile;

// Compilers have these intrinsics with the flags of AMX alone.
#if defined(HEADLIGHT_AMX_PRODUCT)

// What one or two tiles of rows and one or two of columns are made from. Strides count floats.
struct AmxOperands {
  const float* a;
  std::int64_t a_stride;
  const float* left;
  const float* right;
  std::int64_t b_stride;
};

// Sums in tiles 0 1 over 2 3, A in 4 over 5, B in 6 and 7.
template <bool kLower, bool kRight>
HEADLIGHT_INLINE void amx_step(const AmxOperands& at) {
  const std::int64_t a_bytes = at.a_stride * 4, b_bytes = at.b_stride * 4;
  _tile_loadd(6, at.left, b_bytes);
  _tile_stream_loadd(4, at.a, a_bytes);
  HEADLIGHT_AMX_PRODUCT(0, 4, 6);
  if constexpr (kRight) {
    _tile_loadd(7, at.right, b_bytes);
    HEADLIGHT_AMX_PRODUCT(1, 4, 7);
  }
  if constexpr (kLower) {
    _tile_stream_loadd(5, at.a + kAmxRows * at.a_stride, a_bytes);
    HEADLIGHT_AMX_PRODUCT(2, 5, 6);
  }
  if constexpr (kLower && kRight) HEADLIGHT_AMX_PRODUCT(3, 5, 7);
}

// The last step, of fewer words.
template <bool kLower, bool kRight>
void amx_last_step(const AmxOperands& at, std::int64_t rows, int words) noexcept {
  alignas(64) float a[2 * kAmxRows][kAmxWords], b[2][kAmxWords][kAmxWords];
  for (std::int64_t r = 0; r < rows; ++r) store(load_partial(at.a + r * at.a_stride, words), a[r]);
  for (int k = 0; k < kAmxWords; ++k) {
    store(k < words ? load(at.left + k * at.b_stride) : zero(), b[0][k]);
    if constexpr (kRight) store(k < words ? load(at.right + k * at.b_stride) : zero(), b[1][k]);
  }
  write_memory();
  amx_step<kLower, kRight>({a[0], kAmxWords, b[0][0], b[1][0], kAmxWords});
}

// What a tile fetches while it multiplies, some cache lines in each step.
struct AmxAhead {
  const float* b;
  std::int64_t b_floats;  // of a step
  const float* c;
  std::int64_t c_stride;
  std::int64_t c_rows;  // that are left, and those of a step
  std::int64_t c_rows_of_step;

  template <bool kRight>
  HEADLIGHT_INLINE void fetch() noexcept {
    for (std::int64_t i = 0; i < c_rows_of_step && c_rows > 0; ++i) {
      __builtin_prefetch(c);
      if constexpr (kRight) __builtin_prefetch(c + kAmxWords);
      if (--c_rows > 0) c += c_stride;
    }
    for (std::int64_t i = 0; i < b_floats; i += kFloatsOfLine) __builtin_prefetch(b + i, 0, 2);
    b += b_floats;
  }
};

// sums[r · stride + j], from all words.
template <bool kLower, bool kRight>
void amx_sums(AmxOperands at, std::int64_t rows, std::int64_t words, AmxAhead ahead, float* sums,
              std::int64_t stride) noexcept {
  const auto bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) * 4);  // one row has any stride
  _tile_zero(0);
  if constexpr (kRight) _tile_zero(1);
  if constexpr (kLower) _tile_zero(2);
  if constexpr (kLower && kRight) _tile_zero(3);
  for (; words >= kAmxWords; words -= kAmxWords) {
    amx_step<kLower, kRight>(at);
    ahead.template fetch<kRight>();
    at.a += kAmxWords;
    at.left += kAmxWords * at.b_stride;
    at.right += kAmxWords * at.b_stride;
  }
  if (words > 0) amx_last_step<kLower, kRight>(at, rows, static_cast<int>(words));
  _tile_stored(0, sums, bytes);
  if constexpr (kRight) _tile_stored(1, sums + kAmxWords, bytes);
  if constexpr (kLower) _tile_stored(2, sums + kAmxRows * stride, bytes);
  if constexpr (kLower && kRight) _tile_stored(3, sums + kAmxRows * stride + kAmxWords, bytes);
}

// As a RegisterTile (tile-inl.h), of 1 … 32 rows by one vector of columns or two, b.panel_stride from each other.
template <class B, class Finish>
struct AmxTile {
  using Registers = AmxRegisters;
  static constexpr int kMostRows = 2 * kAmxRows;
  static constexpr int kVectors = 2;
  static constexpr int kWordsOfStep = kAmxWords;

  TileRows a;
  B b;                 // b.next: what each step fetches b.next_step floats of
  std::int64_t depth;  // words
  Finish finish;

  void run(std::int64_t rows, std::int64_t vectors, Registers& registers) const noexcept {
    registers.configure(rows);
    alignas(64) float buffer[kMostRows * kVectors * kAmxWords];
    const bool is_done = sums_are_done();
    float* const sums = is_done ? finish.tile.out : buffer;
    const std::int64_t stride = is_done ? finish.tile.out_stride : kVectors * kAmxWords;
    const AmxOperands at{a.at, a.stride, b.at, b.at + b.panel_stride, b.depth_stride};
    const std::int64_t rows_of_step = divide_up(rows, larger(depth / kAmxWords, 1));
    const AmxAhead ahead{b.next, b.next_step, finish.tile.out, finish.tile.out_stride, rows, rows_of_step};
    if (rows > kAmxRows) {
      vectors == 2 ? amx_sums<true, true>(at, rows, depth, ahead, sums, stride)
                   : amx_sums<true, false>(at, rows, depth, ahead, sums, stride);
    } else {
      vectors == 2 ? amx_sums<false, true>(at, rows, depth, ahead, sums, stride)
                   : amx_sums<false, false>(at, rows, depth, ahead, sums, stride);
    }
    if (!is_done) vectors == 2 ? end<2>(rows, buffer) : end<1>(rows, buffer);
  }

 private:
  // Whether the finish has nothing to do but to store them.
  [[nodiscard]] bool sums_are_done() const noexcept {
    if constexpr (std::is_same_v<Finish, GemmSums>) return finish.tile.alpha == 1.0f && !finish.tile.accumulate;
    return false;
  }

  // Row by row through the finish that tiles of vector registers have.
  template <int kOfRow>
  void end(std::int64_t rows, const float* sums) const noexcept {
    kernels::GemmTile row = finish.tile;
    for (std::int64_t r = 0; r < rows; ++r, sums += kVectors * kAmxWords, row.a += row.a_stride) {
      Vec vectors[1][kOfRow];
#pragma GCC unroll 2
      for (int v = 0; v < kOfRow; ++v) vectors[0][v] = load(sums + v * kLanes);
      Finish(row).end(a, b, vectors);
      row.out += row.out_stride;
    }
  }
};

#endif

}  // namespace headlight::HEADLIGHT_TARGET
