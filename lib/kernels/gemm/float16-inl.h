// Products whose B is float16, widened on the way: exactly, so that they have the bits of products of floats.
//
// With an instruction for it, tiles widen B however many there are: that is hidden behind their products. Without one,
// in plain C++ and on SSE4, a panel widened once for all tiles of a block is faster, and the tiles are float32's.
//
// Of each vector of columns a row of words holds row k first, as memory of such numbers does, and then row k + 1.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/gemm/kernels.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/words-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

struct GemmFloat16Panels : GemmWordPanels<GemmFloat16Panels> {
  static HEADLIGHT_INLINE Vec widened(const float* from, int iteration) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(from) + iteration * kLanes);
  }
};

struct Float16Panels {
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

struct TileWidensFloat16 : Float16Panels {
  using Tile = RegisterTile<TileRows, GemmFloat16Panels, GemmSums>;
};

struct PanelsOfFloat16AreWidened : Float16Panels {
  using Tile = RegisterTile<TileRows, GemmPanels, GemmSums>;

  static void widen(const float* words, std::int64_t rows, std::int64_t vectors, float* panel) noexcept {
    const auto* from = reinterpret_cast<const std::uint16_t*>(words);
    for (std::int64_t row = 0; row < rows; ++row, panel += 2 * vectors * kLanes) {
      for (std::int64_t v = 0; v < vectors; ++v, from += 2 * kLanes) {
        store(load_f16(from), panel + v * kLanes);
        store(load_f16(from + kLanes), panel + (vectors + v) * kLanes);
      }
    }
  }
};

struct Float16 : std::conditional_t<kValues.widens_float16, TileWidensFloat16, PanelsOfFloat16AreWidened> {
  static constexpr std::int64_t kOfWord = 2;
  static constexpr std::int64_t kIterationsOfWord = 2;
  static constexpr std::int64_t kMaxDepth = kGemmFloatDepth;
  static constexpr bool kRoundsA = false;
};

}  // namespace headlight::HEADLIGHT_TARGET
