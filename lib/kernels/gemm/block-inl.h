// A block of C from tiles of vector registers: how it is worked through, whatever the numbers of B are. `Numbers` is
// kernels::GemmNumbers.
#pragma once

#include <cstdint>

#include "kernels/gemm/finish-inl.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/numbers.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/plan-inl.h"
#include "kernels/gemm/tile-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {  // of the one file that includes this, or else nothing would be inlined for having a single caller

using kernels::GemmBlock;
using kernels::GemmTile;
using kernels::Operand;
using kernels::OperandLayout;

// One tile of rows takes B as fast as it comes: it asks so many iterations (6 KiB of a packed panel on AVX-512) ahead.
constexpr std::int64_t kStreamIterations = 32;

// One pass over the block: one block of K, some panels, all rows.
struct Pass {
  std::int64_t depth_block;  // its number
  std::int64_t first;        // of K
  std::int64_t depth;
  std::int64_t iterations;  // of a tile, in that depth
  std::int64_t column;
  std::int64_t columns;  // valid ones
  std::int64_t width;    // those filled up to whole vectors
  int panels;
  const float* a;
  std::int64_t a_stride;
  const float* b;
  std::int64_t b_depth_stride;
  std::int64_t b_panel_stride;
  const float* next_b;       // to be read soon, or b
  std::int64_t next_share;   // floats of it that each of several tiles asks for
  std::int64_t next_stride;  // floats between what a tile asks for and what it asks for next
  float* sums;               // of all rows, or null: a tile keeps its own on the stack
  std::int64_t sums_stride;
  bool sums_in_c;
  bool turns_b;  // the tile turns B over
};

// How many columns this pass takes: some panels.
template <class Numbers>
void find_columns(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan, int panels_at_once,
                  Pass& pass) noexcept {
  const std::int64_t left = block.columns - pass.column, width = pass.width;
  pass.panels = left >= panels_at_once * kGemmPanelWidth ? panels_at_once : 1;
  pass.columns = smaller(left, pass.panels * kGemmPanelWidth);
  pass.width = round_up(pass.columns, kLanes);
  // A division takes as long as some iterations over k: none for panels as wide as the last ones.
  if (plan.tiles == 1 || pass.width == width) return;
  pass.next_share = pass.depth * pass.width / plan.tiles;
  pass.next_stride = divide_up(numbers.words_of_prefetch * pass.width, plan.tiles);
}

// A panel (or several) of B for this pass: where it lies, or packed.
template <class Numbers>
void find_b(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan, float* panel,
            Pass& pass) noexcept {
  pass.b_depth_stride = smaller(pass.width, kGemmPanelWidth);
  pass.b_panel_stride = pass.depth * kGemmPanelWidth;
  const std::int64_t column = block.b_column + pass.column;
  if (block.b.layout == OperandLayout::panels) {
    const std::int64_t next = column + pass.panels * kGemmPanelWidth;
    pass.b = block.b.words() + pass.first * block.b.stride + column * pass.depth;
    pass.next_b = next < block.b.stride ? pass.b + pass.panels * pass.b_panel_stride : pass.b;
    if (numbers.widen == nullptr) return;
    numbers.widen(pass.b, pass.depth, pass.width / kLanes, panel);
    pass.b = pass.next_b = panel;
    return;
  }
  if (numbers.pack_panel == nullptr) return;
  pass.turns_b = plan.turns_b && pass.columns == kGemmPanelWidth;
  if (pass.turns_b || (!plan.packs_all && pass.columns == pass.width)) {
    pass.b = block.b.floats_at(pass.first, column);
    pass.b_depth_stride = block.b.stride;
    pass.b_panel_stride = kGemmPanelWidth;
  } else {
    numbers.pack_panel(block.b, pass.first, pass.depth, column, pass.columns, panel);
    pass.b = panel;
  }
  pass.next_b = pass.b;
}

// What the tiles of a pass fetch while they multiply: each its share of the next panel, bytes that come from the
// third-level cache or memory. A single tile looks ahead in its own panels.
template <class Numbers>
void look_ahead(const Numbers& numbers, const Plan<Numbers>& plan, const Pass& pass, std::int64_t index,
                GemmTile& tile) noexcept {
  if (plan.tiles == 1) {
    const std::int64_t words = numbers.words_of_prefetch;  // a power of 2
    const std::int64_t ahead = plan.in_memory ? kMemoryIterations : kStreamIterations;
    tile.next = pass.b + ahead * pass.b_depth_stride;
    tile.next_stride = words * pass.b_depth_stride;
    tile.turn = pass.b + (larger(pass.depth - ahead, 0) & -words) * pass.b_depth_stride;
    return;
  }
  const bool has_next = pass.next_b != pass.b;
  tile.next = has_next ? pass.next_b + index * pass.next_share : pass.b;
  tile.next_stride = has_next ? pass.next_stride : 0;
}

// Where the tiles of this pass leave their sums: in C, in scratch or, if that is all of K, on the stack.
template <class Numbers>
void find_sums(const GemmBlock& block, const Plan<Numbers>& plan, float* sums, Pass& pass) noexcept {
  pass.sums_in_c = plan.sums_in_c && pass.columns == pass.width;
  if (pass.sums_in_c) {
    pass.sums = static_cast<float*>(block.c) + pass.column;
    pass.sums_stride = block.c_row_stride;
  } else {
    pass.sums = plan.sums == 0 ? nullptr : plan.sums_in_c ? sums : sums + pass.column;
    pass.sums_stride = plan.sums == 0 ? pass.width : plan.sums_stride(block);
  }
}

template <class Numbers>
void run_rows(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan, const Pass& pass) noexcept {
  alignas(64) float buffer[kGemmTileRows * kGemmPanelWidth];
  const bool is_last = pass.first + pass.depth >= plan.depth;
  const bool is_done = pass.sums_in_c && is_plain(block.epilogue);
  GemmTile tile;
  tile.a_stride = pass.a_stride;
  tile.b = pass.b;
  tile.b_depth_stride = pass.b_depth_stride;
  tile.b_panel_stride = pass.b_panel_stride;
  tile.next = tile.turn = pass.b;
  tile.next_stride = 0;
  tile.depth = pass.iterations;
  tile.out = buffer;
  tile.out_stride = pass.sums_stride;
  tile.alpha = is_last && is_done ? block.epilogue.alpha : 1.0f;
  tile.accumulate = pass.first > 0;
  if (numbers.find_scales != nullptr) {
    numbers.find_scales(block, pass.first, pass.depth_block, pass.column, tile);
  }
  for (std::int64_t index = 0; index < plan.tiles; ++index) {
    const Rows rows = plan.rows(block, index);
    const GemmPart part{rows.first, rows.count, pass.column, pass.columns};
    tile.a = pass.a + rows.first * pass.a_stride;
    if (pass.sums != nullptr) tile.out = pass.sums + rows.first * pass.sums_stride;
    if (is_last && !is_done) ask_for_epilogue(block, part);
    look_ahead(numbers, plan, pass, index, tile);
    (pass.turns_b ? numbers.turned_tiles[rows.count - 1]
                  : numbers.tiles[gemm_tile_index(numbers.tile_rows, rows.count, pass.width / kLanes)])(tile);
    if (is_last && !is_done) finish_part(numbers.finish, block, part, tile.out, tile.out_stride);
  }
}

// Panels that a pass takes side by side, where there are so many.
template <class Numbers>
int panels_at_once(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan) noexcept {
  if (plan.packs_all || plan.in_memory || numbers.widen != nullptr) return 1;
  return gemm_panels_at_once(block.rows, numbers.panels_of_one_row);
}

// A for this pass: where it lies, or packed.
template <class Numbers>
void find_a(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan, float* packed,
            Pass& pass) noexcept {
  pass.a = static_cast<const float*>(block.a) + pass.first * numbers.iterations_of_word * block.a_depth_stride;
  pass.a_stride = block.a_row_stride;
  if (!plan.packs_a) return;
  const std::int64_t row = gemm_packed_row(pass.iterations);
  gemm_pack_transposed_a(pass.a, block.a_depth_stride, pass.iterations, block.rows, packed, row);
  pass.a = packed;
  pass.a_stride = row;
}

template <class Numbers>
void compute_block(const Numbers& numbers, const GemmBlock& block) noexcept {
  if (block.rows <= 0 || block.columns <= 0) return;
  const Plan<Numbers> plan(numbers, block);
  float* const panel = block.scratch;
  float* const rows_of_a = panel + plan.panel;
  float* const sums = rows_of_a + plan.rows_of_a;
  const int at_once = panels_at_once(numbers, block, plan);

  Pass pass{};
  do {  // once for K = 0 too
    pass.depth = smaller(plan.pass_depth, plan.depth - pass.first);
    pass.iterations = pass.depth * numbers.iterations_of_word;
    // Rows that were not made for this end where K does.
    if (!numbers.rounds_a)
      pass.iterations = smaller(pass.iterations, block.depth - pass.first * numbers.iterations_of_word);
    find_a(numbers, block, plan, rows_of_a, pass);
    pass.width = 0;
    for (pass.column = 0; pass.column < block.columns; pass.column += pass.columns) {
      find_columns(numbers, block, plan, at_once, pass);
      find_b(numbers, block, plan, panel, pass);
      find_sums(block, plan, sums, pass);
      run_rows(numbers, block, plan, pass);
    }
    pass.first += pass.depth;
    ++pass.depth_block;
  } while (pass.first < plan.depth && !(block.is_cancelled != nullptr && block.is_cancelled()));
}

}  // namespace
}  // namespace headlight::HEADLIGHT_TARGET
