// What a block of C takes before any of it is computed: where K is cut, what is packed and where, how rows are shared
// out over tiles. `Numbers` is what block-inl.h says.
#pragma once

#include <cstdint>

#include "kernels/gemm/finish-inl.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/tile-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {  // as block-inl.h

using kernels::GemmBlock;
using kernels::OperandLayout;

// With at most so many tiles of rows, B is read where it lies: packing reads it once as well, and writes it. In place
// is faster for few tiles of rows, packing for many. Asking early for the next panel's rows gained nothing for either.
constexpr int kInPlaceTiles = 5;
// Panels of more words, 16 MiB, come from memory. One at a time they are one stream from the first to the last, and are
// asked for further ahead: several panels side by side are read more slowly.
constexpr std::int64_t kWordsInCache = std::int64_t{4} << 20;
constexpr std::int64_t kMemoryIterations = 96;

// Equal blocks, so that K = 800 is not 768 + 32 with a tile's overhead on a chain of 32.
constexpr std::int64_t depth_block(std::int64_t longest, std::int64_t unit, std::int64_t depth) noexcept {
  return depth <= longest ? depth : round_up(divide_up(depth, divide_up(depth, longest)), unit);
}

struct Rows {
  std::int64_t first;
  std::int64_t count;
};

// How a block is worked through.
template <class Numbers>
struct Plan {
  std::int64_t depth;  // words of K, and those of a pass
  std::int64_t pass_depth;
  std::int64_t tile_rows;  // of the largest
  std::int64_t tiles;
  bool packs_all;  // where B is packed: every panel of it, not only one with part of a vector
  bool turns_b;    // whole panels are not packed: the tile turns B over
  bool packs_a;    // a transposed one
  bool in_memory;  // the panels of B, rather than in a cache
  bool sums_in_c;  // C holds the sums of a tile, or of the first blocks of K, where it may write whole vectors to it
  // Floats of scratch: one packed panel, the last where the others are read in place, 0 where B itself serves; sums
  // that C does not hold; rows of A, 0 where A itself serves. Each begins with a cache line.
  std::int64_t panel;
  std::int64_t sums;
  std::int64_t rows_of_a;

  Plan(const Numbers& numbers, const GemmBlock& block) noexcept
      : depth(numbers.words_of(block.depth)),
        pass_depth(numbers.words_of(depth_block(numbers.longest, numbers.depth_unit, block.depth))),
        tile_rows(numbers.tile_rows),
        tiles(divide_up(block.rows, tile_rows)) {
    const bool is_packed = block.b.layout == OperandLayout::panels;
    packs_all = block.b.layout == OperandLayout::columns || (!is_packed && tiles > kInPlaceTiles);
    turns_b = numbers.turned_tiles != nullptr && block.b.layout == OperandLayout::columns &&
              block.rows <= kernels::kTurnedRows;
    in_memory = is_packed && block.b.stride * depth > kWordsInCache;
    const bool needs_none = numbers.widen == nullptr && (is_packed || (!packs_all && block.columns % kLanes == 0));
    const std::int64_t iterations = pass_depth * (numbers.widen != nullptr ? numbers.iterations_of_word : 1);
    const bool takes_all = (packs_all && !turns_b) || numbers.widen != nullptr;
    const std::int64_t widest = smaller(round_up(block.columns, kLanes), kGemmPanelWidth);
    const std::int64_t last = round_up(block.columns % kGemmPanelWidth, kLanes);
    panel = needs_none ? 0 : round_up(iterations * (takes_all ? widest : last), kFloatsOfLine);
    // What an epilogue reads again waits for lines of C, in no cache perhaps: of one block of K it reads the stack.
    sums_in_c = block.c_type == NumberType::float32 && block.epilogue.beta == 0.0f &&
                block.epilogue.residual != block.c && (is_plain(block.epilogue) || block.depth > numbers.longest);
    sums = block.depth > numbers.longest ? block.rows * sums_stride(block) : 0;
    packs_a = !numbers.rounds_a && block.a_depth_stride != 1;
    rows_of_a = packs_a ? block.rows * gemm_packed_row(pass_depth * numbers.iterations_of_word) : 0;
  }

  [[nodiscard]] std::int64_t scratch_floats() const noexcept { return panel + sums + rows_of_a; }

  // Columns of scratch for sums: those of a panel with part of a vector, or all.
  [[nodiscard]] std::int64_t sums_stride(const GemmBlock& block) const noexcept {
    const std::int64_t columns = round_up(block.columns, kLanes);
    if (!sums_in_c) return columns;
    return block.columns % kLanes != 0 ? smaller(columns, kGemmPanelWidth) : 0;
  }

  // Whole tiles, but the last two share what is left, so that there is no sliver of rows: 13 rows are 7 + 6. (All tiles
  // alike, as eleven of 11 and 12 for 128 rows, are slower.)
  [[nodiscard]] Rows rows(const GemmBlock& block, std::int64_t tile) const noexcept {
    const std::int64_t first = tile * tile_rows;
    if (tile + 2 < tiles) return {first, tile_rows};
    const std::int64_t begin = tiles > 1 ? (tiles - 2) * tile_rows : 0;
    const std::int64_t left = block.rows - begin;
    const std::int64_t half = tiles > 1 ? divide_up(left, 2) : left;
    return tile + 1 < tiles || tiles == 1 ? Rows{begin, half} : Rows{begin + half, left - half};
  }
};

}  // namespace
}  // namespace headlight::HEADLIGHT_TARGET
