// Products whose B is float16, widened on the way: exactly, so that they have the bits of products of floats.
//
// Tiles widen B however many there are: with F16C that is hidden behind their products. (A panel widened once for all
// tiles of a block, in GFLOP/s: 16 × 768 × 768 220 for 261, 128 × 768 × 768 273 for 264, 512³ 277 for 260; on SSE4,
// which has no instruction for it, 48 for 23.)
//
// Of each vector of columns a row of words holds row k first, as memory of such numbers does, and then row k + 1.
#pragma once

#include <cstdint>

#include "kernels/gemm/kernels.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/words-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

struct GemmFloat16Panels : GemmWordPanels<GemmFloat16Panels> {
  static HEADLIGHT_INLINE Vec widened(const float* from, int step) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(from) + step * kLanes);
  }
};

struct Float16 {
  using Tile = RegisterTile<TileRows, GemmFloat16Panels, GemmSums>;
  static constexpr std::int64_t kOfWord = 2;
  static constexpr std::int64_t kStepsOfWord = 2;
  static constexpr std::int64_t kMaxDepth = kGemmFloatDepth;
  static constexpr bool kRoundsA = false;

  static void pack_panel(const kernels::Operand& b, std::int64_t first, std::int64_t depth, std::int64_t column,
                         std::int64_t columns, float* panel) noexcept {
    const std::int64_t width = round_up(columns, kLanes);
    walk_matrix<2>(b, first, depth, column, columns, [&](std::int64_t k, std::int64_t offset, const Vec(&rows)[2]) {
      auto* const to = reinterpret_cast<std::uint16_t*>(panel + k / 2 * width + offset);
      store_f16(rows[0], to);
      store_f16(rows[1], to + kLanes);
    });
  }
};

}  // namespace headlight::HEADLIGHT_TARGET
