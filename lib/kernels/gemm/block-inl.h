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

// One tile of rows takes B as fast as it comes: it asks so many steps of k (6 KiB of a packed panel on AVX-512) ahead.
constexpr std::int64_t kStreamSteps = 32;

// One step of the block: one block of K, some panels, all rows.
struct Step {
  std::int64_t depth_block;  // its number
  std::int64_t first;        // of K
  std::int64_t depth;
  std::int64_t steps;  // of a tile, in that depth
  std::int64_t column;
  std::int64_t columns;  // valid ones
  std::int64_t width;    // those filled up to whole vectors
  int panels;
  const float* a;
  std::int64_t a_stride;
  const float* b;
  std::int64_t b_depth_stride;
  std::int64_t b_panel_stride;
  const float* next_b;      // to be read soon, or b
  std::int64_t next_share;  // of several tiles: how much of it each asks for, and how far it goes on between two steps
  std::int64_t next_step;
  float* sums;  // of all rows, or null: a tile keeps its own on the stack
  std::int64_t sums_stride;
  bool sums_in_c;
};

// How many columns this step takes: some panels.
template <class Numbers>
void find_columns(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan, int panels_at_once,
                  Step& step) noexcept {
  const std::int64_t left = block.columns - step.column, width = step.width;
  step.panels = left >= panels_at_once * kGemmPanelWidth ? panels_at_once : 1;
  step.columns = smaller(left, step.panels * kGemmPanelWidth);
  step.width = round_up(step.columns, kLanes);
  // A division takes as long as some steps of k: none for panels as wide as the last ones.
  if (plan.tiles == 1 || step.width == width) return;
  step.next_share = step.depth * step.width / plan.tiles;
  step.next_step = divide_up(numbers.words_of_step * step.width, plan.tiles);
}

// A panel (or several) of B for this step: where it lies, or packed.
template <class Numbers>
void find_b(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan, float* panel,
            Step& step) noexcept {
  step.b_depth_stride = smaller(step.width, kGemmPanelWidth);
  step.b_panel_stride = step.depth * kGemmPanelWidth;
  const std::int64_t column = block.b_column + step.column;
  if (block.b.layout == OperandLayout::panels) {
    const std::int64_t next = column + step.panels * kGemmPanelWidth;
    step.b = block.b.words() + step.first * block.b.stride + column * step.depth;
    step.next_b = next < block.b.stride ? step.b + step.panels * step.b_panel_stride : step.b;
    if (numbers.widen == nullptr) return;
    numbers.widen(step.b, step.depth, step.width / kLanes, panel);
    step.b = step.next_b = panel;
    return;
  }
  if (numbers.pack_panel == nullptr) return;
  if (!plan.packs_all && step.columns == step.width) {
    step.b = block.b.floats_at(step.first, column);
    step.b_depth_stride = block.b.stride;
    step.b_panel_stride = kGemmPanelWidth;
  } else {
    numbers.pack_panel(block.b, step.first, step.depth, column, step.columns, panel);
    step.b = panel;
  }
  step.next_b = step.b;
}

// What the tiles of a step fetch while they multiply: each its share of the next panel, bytes that come from the
// third-level cache or memory. A single tile looks ahead in its own panels.
template <class Numbers>
void look_ahead(const Numbers& numbers, const Plan<Numbers>& plan, const Step& step, std::int64_t index,
                GemmTile& tile) noexcept {
  if (plan.tiles == 1) {
    const std::int64_t words = numbers.words_of_step;  // a power of 2
    const std::int64_t ahead = plan.in_memory ? kMemorySteps : kStreamSteps;
    tile.next = step.b + ahead * step.b_depth_stride;
    tile.next_step = words * step.b_depth_stride;
    tile.turn = step.b + ((step.depth - ahead) & -words) * step.b_depth_stride;
    return;
  }
  const bool has_next = step.next_b != step.b;
  tile.next = has_next ? step.next_b + index * step.next_share : step.b;
  tile.next_step = has_next ? step.next_step : 0;
}

// Where the tiles of this step leave their sums: in C, in scratch or, if that is all of K, on the stack.
template <class Numbers>
void find_sums(const GemmBlock& block, const Plan<Numbers>& plan, float* sums, Step& step) noexcept {
  step.sums_in_c = plan.sums_in_c && step.columns == step.width;
  if (step.sums_in_c) {
    step.sums = static_cast<float*>(block.c) + step.column;
    step.sums_stride = block.c_row_stride;
  } else {
    step.sums = plan.sums == 0 ? nullptr : plan.sums_in_c ? sums : sums + step.column;
    step.sums_stride = plan.sums == 0 ? step.width : plan.sums_stride(block);
  }
}

template <class Numbers>
void run_rows(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan, const Step& step) noexcept {
  alignas(64) float buffer[kGemmTileRows * kGemmPanelWidth];
  const bool is_last = step.first + step.depth >= plan.depth;
  const bool is_done = step.sums_in_c && is_plain(block.epilogue);
  GemmTile tile;
  tile.a_stride = step.a_stride;
  tile.b = step.b;
  tile.b_depth_stride = step.b_depth_stride;
  tile.b_panel_stride = step.b_panel_stride;
  tile.next = tile.turn = step.b;
  tile.next_step = 0;
  tile.depth = step.steps;
  tile.out = buffer;
  tile.out_stride = step.sums_stride;
  tile.alpha = is_last && is_done ? block.epilogue.alpha : 1.0f;
  tile.accumulate = step.first > 0;
  if (numbers.find_scales != nullptr) {
    numbers.find_scales(block, step.first, step.depth_block, step.column, tile);
  }
  for (std::int64_t index = 0; index < plan.tiles; ++index) {
    const Rows rows = plan.rows(block, index);
    const GemmPart part{rows.first, rows.count, step.column, step.columns};
    tile.a = step.a + rows.first * step.a_stride;
    if (step.sums != nullptr) tile.out = step.sums + rows.first * step.sums_stride;
    if (is_last && !is_done) ask_for_epilogue(block, part);
    look_ahead(numbers, plan, step, index, tile);
    numbers.tiles[gemm_tile_index(numbers.tile_rows, rows.count, step.width / kLanes)](tile);
    if (is_last && !is_done) finish_part(numbers.finish, block, part, tile.out, tile.out_stride);
  }
}

// Panels that a step takes side by side, where there are so many.
template <class Numbers>
int panels_at_once(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan) noexcept {
  if (plan.packs_all || plan.in_memory || numbers.widen != nullptr) return 1;
  return gemm_panels_at_once(block.rows, numbers.panels_of_one_row);
}

// A for this step: where it lies, or packed.
template <class Numbers>
void find_a(const Numbers& numbers, const GemmBlock& block, const Plan<Numbers>& plan, float* packed,
            Step& step) noexcept {
  step.a = static_cast<const float*>(block.a) + step.first * numbers.steps_of_word * block.a_depth_stride;
  step.a_stride = block.a_row_stride;
  if (!plan.packs_a) return;
  const std::int64_t row = gemm_packed_row(step.steps);
  gemm_pack_transposed_a(step.a, block.a_depth_stride, step.steps, block.rows, packed, row);
  step.a = packed;
  step.a_stride = row;
}

template <class Numbers>
void compute_block(const Numbers& numbers, const GemmBlock& block) noexcept {
  if (block.rows <= 0 || block.columns <= 0) return;
  const Plan<Numbers> plan(numbers, block);
  float* const panel = block.scratch;
  float* const rows_of_a = panel + plan.panel;
  float* const sums = rows_of_a + plan.rows_of_a;
  const int at_once = panels_at_once(numbers, block, plan);

  Step step{};
  do {  // once for K = 0 too
    step.depth = smaller(plan.depth_step, plan.depth - step.first);
    step.steps = step.depth * numbers.steps_of_word;
    // Rows that were not made for this end where K does.
    if (!numbers.rounds_a) step.steps = smaller(step.steps, block.depth - step.first * numbers.steps_of_word);
    find_a(numbers, block, plan, rows_of_a, step);
    step.width = 0;
    for (step.column = 0; step.column < block.columns; step.column += step.columns) {
      find_columns(numbers, block, plan, at_once, step);
      find_b(numbers, block, plan, panel, step);
      find_sums(block, plan, sums, step);
      run_rows(numbers, block, plan, step);
    }
    step.first += step.depth;
    ++step.depth_block;
  } while (step.first < plan.depth && !(block.is_cancelled != nullptr && block.is_cancelled()));
}

}  // namespace
}  // namespace headlight::HEADLIGHT_TARGET
