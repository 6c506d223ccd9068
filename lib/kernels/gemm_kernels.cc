// Compiled once per instruction set: a block of C from tiles.
#include "kernels/gemm_kernels.h"

#include "kernels/gemm_epilogue-inl.h"
#include "kernels/gemm_pack-inl.h"
#include "kernels/gemm_tile-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

using kernels::GemmBlock;
using kernels::GemmKernels;
using kernels::GemmLayout;

// Longest block of K. A panel of it (96 KiB of 768 × 32 floats on AVX-512) stays with the rows of A in the second-level
// cache, and the widths of BERT-family models need one block. 256–384 lost 1–2 %: the tile's sums travel more often.
constexpr std::int64_t kMaxDepth = 768;
// A panel that small is packed on the stack: short products need no scratch memory. 16 KiB.
constexpr std::int64_t kStackPanel = 4096;
// With at most so many tiles of rows, B is read where it lies: packing reads it once as well, and writes it. On AVX-512
// with K = 768, in place won by 10–20 % of the peak at 25 to 48 rows, packing by 10 % from 128 rows on and N ≥ 2048.
// Asking early for the next panel's rows gained nothing for either.
constexpr int kInPlaceTiles = 4;

constexpr std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

// Equal blocks, so that K = 800 is not 768 + 32 with a tile's overhead on a 32-step chain.
std::int64_t depth_block(std::int64_t depth) noexcept {
  if (depth <= kMaxDepth) return depth;
  const std::int64_t blocks = (depth + kMaxDepth - 1) / kMaxDepth;
  return round_up((depth + blocks - 1) / blocks, 8);
}

struct Rows {
  std::int64_t first;
  std::int64_t count;
};

// How a block is worked through.
struct Plan {
  std::int64_t depth_step;
  std::int64_t tiles;
  bool packs_all;  // every panel of B, not only a ragged one
  // Floats: of one packed panel, or 0 where the stack or B itself serves; of sums.
  std::int64_t panel;
  std::int64_t sums;

  explicit Plan(const GemmBlock& block) noexcept
      : depth_step(depth_block(block.depth)), tiles((block.rows + kGemmTileRows - 1) / kGemmTileRows) {
    const bool is_packed = block.b_layout == GemmLayout::panels;
    packs_all = block.b_layout == GemmLayout::columns || (!is_packed && tiles > kInPlaceTiles);
    panel = depth_step * kGemmPanelWidth;
    const bool needs_none = is_packed || (!packs_all && block.columns % kGemmPanelWidth == 0);
    if (needs_none || panel <= kStackPanel) panel = 0;
    sums = block.depth > kMaxDepth ? block.rows * round_up(block.columns, kGemmPanelWidth) : 0;
  }

  [[nodiscard]] std::int64_t scratch_floats() const noexcept { return panel + sums; }

  // Balanced, so that no sliver of rows is left: 13 rows are 7 + 6.
  [[nodiscard]] Rows rows(const GemmBlock& block, std::int64_t tile) const noexcept {
    const std::int64_t each = block.rows / tiles;
    const std::int64_t longer = block.rows % tiles;
    return {tile * each + least(tile, longer), each + (tile < longer ? 1 : 0)};
  }
};

std::int64_t scratch_floats(const GemmBlock& block) noexcept { return Plan(block).scratch_floats(); }

void pack_panel(const float* b, std::int64_t b_stride, GemmLayout layout, std::int64_t depth, std::int64_t columns,
                float* panel) noexcept {
  if (layout == GemmLayout::rows) {
    gemm_pack_rows(b, b_stride, depth, static_cast<int>(columns), panel);
  } else {
    gemm_pack_columns(b, b_stride, depth, static_cast<int>(columns), panel);
  }
}

// One step of the block: one block of K, some panels, all rows.
struct Step {
  std::int64_t first;  // of K
  std::int64_t depth;
  std::int64_t column;
  std::int64_t columns;  // valid ones
  int panels;
  const float* b;
  std::int64_t b_depth_stride;
  std::int64_t b_panel_stride;
  const float* next_b;  // to be read soon, or b
  float* sums;          // [rows, sums_stride] at `column`, or null where K has one block
  std::int64_t sums_stride;
};

// A panel (or several) of B for this step: where it lies, or packed.
void find_b(const GemmBlock& block, const Plan& plan, float* panel, Step& step) noexcept {
  step.b_depth_stride = kGemmPanelWidth;
  step.b_panel_stride = step.depth * kGemmPanelWidth;
  if (block.b_layout == GemmLayout::panels) {
    const std::int64_t all_columns = round_up(block.b_stride, kGemmPanelWidth);
    const std::int64_t column = block.b_column + step.column;
    const std::int64_t next = column + step.panels * kGemmPanelWidth;
    step.b = block.b + step.first * all_columns + column * step.depth;
    step.next_b = next < all_columns ? step.b + step.panels * step.b_panel_stride : step.b;
    return;
  }
  const bool by_rows = block.b_layout == GemmLayout::rows;
  step.b = by_rows ? block.b + step.first * block.b_stride + step.column
                   : block.b + step.column * block.b_stride + step.first;
  if (!plan.packs_all && step.columns >= kGemmPanelWidth) {
    step.b_depth_stride = block.b_stride;
    step.b_panel_stride = kGemmPanelWidth;
  } else {
    pack_panel(step.b, block.b_stride, block.b_layout, step.depth, step.columns, panel);
    step.b = panel;
  }
  step.next_b = step.b;
}

void run_rows(const GemmBlock& block, const Plan& plan, const Step& step) noexcept {
  alignas(64) float buffer[kGemmTileRows * kGemmPanelWidth];
  const kernels::GemmEpilogue& epilogue = block.epilogue;
  const bool is_last = step.first + step.depth >= block.depth;
  const std::int64_t width = step.panels * kGemmPanelWidth;
  const bool direct = step.sums == nullptr && step.columns == width && epilogue.beta == 0.0f &&
                      epilogue.bias == nullptr && epilogue.activation == Activation::none &&
                      epilogue.residual == nullptr;
  // Each tile asks for its share of the next panel: bytes that come from main memory while others are multiplied.
  // 96 × 4096 × 4096 went from 80 % of the peak to 91 %; what fits the caches neither gained nor lost.
  const std::int64_t next_step = step.next_b == step.b ? 0 : width / plan.tiles;
  for (std::int64_t index = 0; index < plan.tiles; ++index) {
    const Rows rows = plan.rows(block, index);
    float* c = block.c + rows.first * block.c_row_stride + step.column;
    GemmTile tile{};
    tile.depth = step.depth;
    tile.a = block.a + rows.first * block.a_row_stride + step.first * block.a_depth_stride;
    tile.a_row_stride = block.a_row_stride;
    tile.a_depth_stride = block.a_depth_stride;
    tile.b = step.b;
    tile.b_depth_stride = step.b_depth_stride;
    tile.b_panel_stride = step.b_panel_stride;
    tile.next_b = step.next_b + index * next_step * step.depth;
    tile.next_b_step = next_step;
    tile.out = c;
    tile.out_stride = block.c_row_stride;
    tile.alpha = epilogue.alpha;
    if (!direct) {
      tile.out = step.sums != nullptr ? step.sums + rows.first * step.sums_stride : buffer;
      tile.out_stride = step.sums != nullptr ? step.sums_stride : width;
      tile.alpha = 1.0f;
      tile.accumulate = step.first > 0;
    }
    (step.panels > 1 ? kGemmWideTiles : kGemmTiles)[rows.count - 1](tile);
    if (direct || !is_last) continue;
    GemmFinish finish{tile.out, tile.out_stride, rows.count, step.columns, c, block.c_row_stride, epilogue};
    if (epilogue.bias != nullptr) finish.epilogue.bias += step.column;
    if (epilogue.residual != nullptr) {
      finish.epilogue.residual += rows.first * epilogue.residual_row_stride + step.column;
    }
    gemm_finish(finish);
  }
}

void block(const GemmBlock& block) noexcept {
  alignas(64) float stack_panel[kStackPanel];
  if (block.rows <= 0 || block.columns <= 0) return;
  const Plan plan(block);
  float* const panel = plan.panel > 0 ? block.scratch : stack_panel;
  float* const sums = plan.sums > 0 ? block.scratch + plan.panel : nullptr;
  const int at_once = plan.packs_all ? 1 : gemm_panels_at_once(block.rows);

  Step step{};
  step.sums_stride = round_up(block.columns, kGemmPanelWidth);
  do {  // once for K = 0 too
    step.depth = least(plan.depth_step, block.depth - step.first);
    for (step.column = 0; step.column < block.columns; step.column += step.panels * kGemmPanelWidth) {
      const std::int64_t left = block.columns - step.column;
      step.panels = left >= at_once * kGemmPanelWidth ? at_once : 1;
      step.columns = least(left, step.panels * kGemmPanelWidth);
      step.sums = sums != nullptr ? sums + step.column : nullptr;
      find_b(block, plan, panel, step);
      run_rows(block, plan, step);
    }
    step.first += step.depth;
  } while (step.first < block.depth);
}

}  // namespace

extern const GemmKernels gemm_kernels;
const GemmKernels gemm_kernels = {kLanes,         kGemmTileRows, kGemmPanelWidth, kInPlaceTiles,
                                  scratch_floats, block,         pack_panel,      depth_block};

}  // namespace headlight::HEADLIGHT_TARGET
