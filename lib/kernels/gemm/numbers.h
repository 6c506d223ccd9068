// What products of one type of numbers are made of: tiles, and what the way through a block of C must know of them.
// That way is compiled once for each instruction set, in block_kernels.cc; its features take it, too.
#pragma once

#include <cstdint>

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/kernels.h"
#include "kernels/operand.h"
#include "simd/integers.h"

namespace headlight::kernels {

// A tile of C, from rows of A and a panel of B, or several panels side by side. Strides count words of four bytes.
struct GemmTile {
  const float* a;
  std::int64_t a_stride;
  const float* b;
  std::int64_t b_depth_stride;  // from one k to the next; where the tile turns B over, from one column to the next
  std::int64_t b_panel_stride;
  const float* next;         // to be read soon: every two words of K ask for two or three cache lines of it,
  std::int64_t next_stride;  // and go so many floats on
  const float* turn;         // where that has come to the end of panels that are read side by side
  std::int64_t depth;        // iterations
  // out ← α · sum, or α · (out + sum).
  float* out;
  std::int64_t out_stride;
  float alpha;
  bool accumulate;

  // What integers become floats by: of columns of B, behind which the next group's and the next panel's lie; and of
  // rows of A, from its first word of this block of K.
  const void* column_scales;
  const float* column_sums;
  std::int64_t group_stride;
  std::int64_t panel_scales;
  std::int64_t row_scales;
  std::int64_t row_sums;
};
using GemmTileFunction = void (*)(const GemmTile& tile) noexcept;

// With at most so many rows, tiles of float32 turn a B that lies by columns over in registers.
inline constexpr int kTurnedRows = 2;

// B is read in words of four bytes, and K is counted in them.
struct GemmNumbers {
  std::int64_t of_word;             // numbers of a column of B in a word
  std::int64_t iterations_of_word;  // of a tile; and floats of A beside a word, where rows of it are rounded
  std::int64_t words_of_prefetch;   // of a column, after which a tile moves its prefetches by next_stride
  std::int64_t longest;             // numbers of the longest block of K, and what all but the last are a multiple of
  std::int64_t depth_unit;
  bool rounds_a;  // whether tiles read rows of A that round_rows() made, and B only as panels
  int panels_of_one_row;
  int tile_rows;  // of the largest tile
  // [(vectors − 1) · tile_rows + rows − 1], and those of one to three rows on several panels.
  const GemmTileFunction* tiles;
  GemmFinishFunction finish;  // from a tile's sums to C
  // Of float32: a panel of a B that is none yet. Else null.
  void (*pack_panel)(const Operand& b, std::int64_t first, std::int64_t depth, std::int64_t column,
                     std::int64_t columns, float* panel) noexcept;
  // Of float32: tiles of one panel that turn B over, of one row to kTurnedRows. Else null.
  const GemmTileFunction* turned_tiles;
  // Of a type whose panels are widened once for all tiles, which are float32's: rows of words of a panel of so many
  // vectors, as floats. Else null.
  void (*widen)(const float* words, std::int64_t rows, std::int64_t vectors, float* panel) noexcept;
  // The scales of a tile, from the block's word of K, the number of the block of K and the first column. Null without.
  void (*find_scales)(const GemmBlock& block, std::int64_t first_word, std::int64_t depth_block, std::int64_t column,
                      GemmTile& tile) noexcept;

  // Of so many numbers of K. A division takes as long as some small products.
  [[nodiscard, gnu::always_inline]] std::int64_t words_of(std::int64_t depth) const noexcept {
    return of_word == 1 ? depth : divide_up(depth, of_word);
  }
};

}  // namespace headlight::kernels

namespace headlight::HEADLIGHT_SET {

// GemmKernels::block(), scratch_floats() and depth_block() of such numbers.
void gemm_block(const kernels::GemmNumbers& numbers, const kernels::GemmBlock& block) noexcept;
std::int64_t gemm_scratch_floats(const kernels::GemmNumbers& numbers, const kernels::GemmBlock& block) noexcept;

}  // namespace headlight::HEADLIGHT_SET
