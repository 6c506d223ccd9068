// Compiled once per instruction set: products whose B is float32.
#include "kernels/gemm/kernels.h"

#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/table-inl.h"
#include "kernels/gemm/turned-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

struct Float32 {
  using Tile = RegisterTile<TileRows, GemmPanels, GemmSums>;
  static constexpr std::int64_t kOfWord = 1;
  static constexpr std::int64_t kIterationsOfWord = 1;
  static constexpr std::int64_t kMaxDepth = kGemmFloatDepth;
  static constexpr bool kRoundsA = false;
  // Without vectors there is nothing to turn.
  static constexpr const kernels::GemmTileFunction* kTurned = kLanes > 1 ? kTurnedTiles : nullptr;

  // A call of its own: among the block's variables g++ 12 keeps this loop's in memory.
  [[gnu::noinline]] static void pack_panel(const kernels::Operand& b, std::int64_t first, std::int64_t depth,
                                           std::int64_t column, std::int64_t columns, float* panel) noexcept {
    const float* from = b.floats_at(first, column);
    if (b.layout == kernels::OperandLayout::rows) {
      gemm_pack_rows(from, b.stride, depth, static_cast<int>(columns), panel);
    } else {
      gemm_pack_columns(from, b.stride, depth, static_cast<int>(columns), panel);
    }
  }
};

}  // namespace

constinit const GemmTileTable gemm_float_tiles = kTilesOf<Float32::Tile>;

extern const kernels::GemmKernels gemm_kernels;
constinit const kernels::GemmKernels gemm_kernels = gemm_table<Float32>(kInPlaceTiles, 1);

}  // namespace headlight::HEADLIGHT_TARGET
