#include "ops/gemm/split.h"

#include <algorithm>
#include <array>

#include "ops/gemm/internal.h"
#include "runtime/costs.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// Sixteen tiles of rows (144 on AVX-512): with 768 of K they take 432 KiB of the second-level cache, and a panel 144.
constexpr std::int64_t kTilesPerBlock = 16;
// Those whose products a model's weights are multiplied in.
constexpr std::array kTypesOfPieces = {NumberType::float32, NumberType::bfloat16, NumberType::int8};
// Of AMX's tiles, of 32 rows, four at least: with fewer B comes too often from the third-level cache. They are read
// again for every 32 columns, and so shall take no more than 512 KiB of the second, where rows of C go through, too. Of
// more than so many words of K a part is read at a time (kernels/gemm/amx_plan-inl.h).
constexpr std::int64_t kRowsOfTileRegisters = 32;
constexpr std::int64_t kLeastTileRegisters = 4;
constexpr std::int64_t kMostTileRegisters = 8;
constexpr std::int64_t kMostFloatsOfTileRegisters = std::int64_t{1} << 17;
constexpr std::int64_t kMostWordsOfTileRegisters = 1536;
// A block that packs its own panels of B does it once for all its rows; 42 tiles make that little of the work. With
// more rows B is packed as a whole first, into scratch memory, and read as a PackedMatrix is.
constexpr std::int64_t kTilesPerPackingBlock = 42;
// Of a larger B no copy is made: 64 MiB.
constexpr std::int64_t kMostPackedFloats = std::int64_t{16} << 20;
// A block that turns a transposed A over does it for all its columns: as many as leave the workers enough tasks. With
// 64 panels it is little beside the products.
constexpr std::int64_t kLeastPanelsPerTurn = 8;
constexpr std::int64_t kMostPanelsPerTurn = 64;
// So many tasks a worker that all end together, and no more: a task whose panels lie side by side fetches the next one
// while it computes, and only its first comes unannounced. With one panel each, half of what two threads fetched early
// was for the other.
constexpr std::int64_t kTasksPerWorker = 3;
constexpr std::int64_t kMaxPanels = 8;
// With so many rows for each worker, each has its own, in all products of a layer the same: sums of the product before
// then lie in its own second-level cache and not in another core's, and that B is read once for each worker hides
// behind the products. Where every block packs its own panels of B, it takes more.
constexpr std::int64_t kRowsPerWorker = 48;

std::int64_t tiles_per_block(const kernels::GemmKernels& kernels, std::int64_t depth) noexcept {
  if (kernels.tile_rows < kRowsOfTileRegisters) return kTilesPerBlock;
  const std::int64_t row = std::min(kernels.rounded_row(depth) / 16 * 16, kMostWordsOfTileRegisters);
  return std::clamp(kMostFloatsOfTileRegisters / (kernels.tile_rows * std::max(row, std::int64_t{1})),
                    kLeastTileRegisters, kMostTileRegisters);
}

// Whether it pays to pack all of B at once, asked without a product that a shape without memory behind it would
// overflow.
bool pays_to_pack_first(const kernels::GemmKernels& kernels, const kernels::GemmBlock& product) noexcept {
  const std::int64_t width = round_up(product.columns, kernels.lanes);
  return divide_up(product.rows, kernels.tile_rows) > kTilesPerPackingBlock &&
         product.depth <= kMostPackedFloats / std::max(width, std::int64_t{1});
}

// By row blocks: who rounds rows of A, and how many columns are a task's.
void split_columns(GemmSplit& split, const kernels::GemmKernels& kernels, std::int64_t batch, int threads,
                   const kernels::GemmBlock& product) noexcept {
  const std::int64_t panels = divide_up(product.columns, kernels.panel_width);
  const std::int64_t all = batch * split.row_blocks * panels, enough = all / (kTasksPerWorker * threads);
  std::int64_t panels_each = std::clamp(enough, std::int64_t{1}, kMaxPanels);
  if (kernels.round_rows != nullptr && !lies_rounded(kernels, product)) {
    // Rows that are many stay in the second-level cache of who rounded them; of few, all are rounded before any task.
    const bool is_enough = split.row_blocks >= kTasksPerWorker * threads;
    split.rounding = is_enough || threads == 1 ? RoundA::by_block : RoundA::ahead;
    if (split.rounding == RoundA::by_block) panels_each = panels;
  } else if (product.a_depth_stride != 1) {
    const std::int64_t for_all = divide_up(all, std::int64_t{threads});  // else some have nothing to do
    panels_each = std::clamp(enough, std::min(kLeastPanelsPerTurn, for_all), kMostPanelsPerTurn);
  }
  if (product.rows < kernels.tile_rows) panels_each = round_up(panels_each, 4);  // few rows go over four at once
  split.columns_each = panels_each * kernels.panel_width;
  split.column_blocks = divide_up(panels, panels_each);
  // Whichever reads fewer bytes again: all of B for each block of rows, or all of A for each block of columns.
  split.rows_fastest = product.columns * (split.row_blocks / split.row_groups - 1) >
                       product.rows / split.row_groups * (split.column_blocks - 1);
}

// How many blocks are a task, and how many workers that is worth.
void split_tasks(GemmSplit& split, const kernels::GemmKernels& kernels, std::int64_t batch, const Engine& engine,
                 const kernels::GemmBlock& product) noexcept {
  const std::int64_t n = product.columns, k = product.depth;
  const std::int64_t blocks = batch * split.row_blocks * split.column_blocks;
  const double work = static_cast<double>(divide_up(product.rows, split.row_blocks)) *
                      static_cast<double>(std::min(n, split.columns_each)) *
                      static_cast<double>(std::max(k, std::int64_t{1}));
  split.grain = std::clamp(static_cast<std::int64_t>(runtime::costs::kGemmTask * kernels.products / work),
                           std::int64_t{1}, std::max(blocks, std::int64_t{1}));
  split.tasks = divide_up(blocks, split.grain);
  const double bytes =
      static_cast<double>(n) * static_cast<double>(product.b.panel_rows(k)) * static_cast<double>(sizeof(float));
  const double nanoseconds =
      work * static_cast<double>(blocks) / (runtime::costs::kVectorProducts * kernels.lanes * kernels.products) +
      static_cast<double>(batch) * bytes * runtime::costs::kGemmReading;
  split.workers = runtime::workers_for(engine, split.tasks, nanoseconds);
}

}  // namespace

bool lies_rounded(const kernels::GemmKernels& kernels, const kernels::GemmBlock& product) noexcept {
  const bool in_words = product.depth % 2 == 0 && product.a_row_stride % 2 == 0 &&
                        reinterpret_cast<std::uintptr_t>(product.a) % sizeof(float) == 0;
  // Tile registers read many rows faster from where they are copied to: further apart by an odd number of cache lines.
  const bool is_worth_a_copy = kernels.tile_rows >= kRowsOfTileRegisters && product.rows > kernels.tile_rows;
  return kernels.reads_bfloat16 && product.a_type == NumberType::bfloat16 && product.a_depth_stride == 1 && in_words &&
         !is_worth_a_copy;
}

std::int64_t gemm_most_rows_at_once(const Engine& engine) noexcept {
  std::int64_t of_worker = 0;
  for (const NumberType type : kTypesOfPieces) {
    const kernels::GemmKernels& kernels = gemm_kernels(engine, type);
    of_worker = std::max(of_worker, kernels.tile_rows * tiles_per_block(kernels, 0));
  }
  return engine.threads() * of_worker;
}

std::int64_t gemm_rows_at_once(const Engine& engine, std::int64_t rows, std::int64_t most) noexcept {
  most = std::min(most, gemm_most_rows_at_once(engine));
  if (rows <= most) return rows;
  std::int64_t tile = kRowsOfTileRegisters;
  for (const NumberType type : kTypesOfPieces) {
    tile = std::min(tile, std::int64_t{gemm_kernels(engine, type).tile_rows});
  }
  // Full pieces would leave a last one of a few rows, for which all of B is read again; so would rounding to larger
  // tiles, where pieces are many.
  return std::min(most, round_up(divide_up(rows, divide_up(rows, most)), tile));
}

GemmSplit split_gemm(const Engine& engine, std::int64_t batch, const kernels::GemmBlock& product,
                     PackB pack_b) noexcept {
  const kernels::GemmKernels& kernels = gemm_kernels(engine, product.b.type);
  const int threads = engine.threads();
  GemmSplit split{};
  const std::int64_t m = product.rows;
  const std::int64_t n = product.columns;
  const std::int64_t k = product.depth;
  const std::int64_t tiles = divide_up(m, kernels.tile_rows);
  bool packs = product.b.layout == kernels::OperandLayout::columns ||
               (product.b.layout == kernels::OperandLayout::rows && tiles > kernels.in_place_tiles);
  kernels::GemmBlock block = product;
  if (packs && pack_b == PackB::once_where_it_pays && batch == 1 && pays_to_pack_first(kernels, product)) {
    split.packs_first = true;
    split.packed = split.for_call<float>(round_up(n, kernels.lanes), k);
    block.b.layout = kernels::OperandLayout::panels;
    packs = false;
  }
  const std::int64_t tiles_each = packs ? kTilesPerPackingBlock : tiles_per_block(kernels, k);
  split.row_blocks = divide_up(tiles, tiles_each);
  const std::int64_t rows_per_worker = packs ? kTilesPerPackingBlock * kernels.tile_rows : kRowsPerWorker;
  split.row_groups = batch == 1 && m >= rows_per_worker * threads ? threads : 1;
  split.row_blocks = round_up(split.row_blocks, split.row_groups);
  split_columns(split, kernels, batch, threads, product);
  split_tasks(split, kernels, batch, engine, product);

  const bool rounds = split.rounding != RoundA::no;
  if (rounds) block.a_depth_stride = 1;
  block.rows = divide_up(m, split.row_blocks);
  block.columns = std::min(n, split.columns_each);
  std::int64_t floats = kernels.scratch_floats(block);
  if (split.column_blocks > 1) {
    block.columns = n - (split.column_blocks - 1) * split.columns_each;
    floats = std::max(floats, kernels.scratch_floats(block));
  }
  split.scratch = split.for_worker<float>(floats);
  if (rounds) {
    // As many as may be rounded ahead, which is more than workers round by block: fewer rows never take more memory.
    const std::int64_t most = kTasksPerWorker * threads * tiles_each * kernels.tile_rows;
    split.rounded = split.for_call<float>(std::min(m, most), kernels.rounded_row(k));
  }
  return split;
}

std::size_t gemm_bytes_up_to(const Engine& engine, kernels::GemmBlock product) noexcept {
  const kernels::GemmKernels& kernels = gemm_kernels(engine, product.b.type);
  const std::int64_t m = product.rows, n = product.columns, k = product.depth;
  if (m == 0 || n == 0) return 0;
  const bool packs = product.b.layout != kernels::OperandLayout::panels;
  GemmSplit most{};
  most.workers = engine.threads();
  product.epilogue.beta = 1.0f;  // asks for the most
  product.a_depth_stride = 1;
  std::int64_t floats = 0;
  if (packs && n == 1) {  // one column may be computed as one row (run.cc)
    kernels::GemmBlock turned = product;
    turned.rows = 1;
    turned.columns = m;
    floats = kernels.scratch_floats(turned);
  }
  const bool packs_first = packs && pays_to_pack_first(kernels, product);
  if (packs_first) most.packed = most.for_call<float>(round_up(n, kernels.lanes), k);
  const std::int64_t tiles_each = std::max(packs ? kTilesPerPackingBlock : 0, tiles_per_block(kernels, k));
  const bool rounds = kernels.round_rows != nullptr;
  product.rows = std::min(m, tiles_each * kernels.tile_rows);
  if (!rounds) product.columns = std::min(n, kMaxPanels * kernels.panel_width);
  floats = std::max(floats, kernels.scratch_floats(product));
  if (packs_first) {
    product.b.layout = kernels::OperandLayout::panels;
    floats = std::max(floats, kernels.scratch_floats(product));
  }
  most.scratch = most.for_worker<float>(floats);
  if (rounds) {
    const std::int64_t ahead = kTasksPerWorker * engine.threads() * tiles_each * kernels.tile_rows;
    most.rounded = most.for_call<float>(std::min(m, ahead), kernels.rounded_row(k));
  }
  return most.bytes();
}

}  // namespace headlight::ops
