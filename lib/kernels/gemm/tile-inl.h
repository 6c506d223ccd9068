// Tiles of C in registers, one rank-1 update for each k.
#pragma once

#include <cstdint>

#include "kernels/gemm/numbers.h"
#include "kernels/tile-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// A tile is so many rows by so many vectors of sums; an iteration over k loads those vectors of B and broadcasts an
// element of A for each row. Two pipes of latency 4 want at least 8 sums in flight. The fewer loads for a product the
// better: Intel's cores pay for each with their clock, twice for a whole vector.
inline constexpr int kGemmTileRows = kValues.gemm_tile_rows;
inline constexpr int kGemmPanelVectors = kValues.gemm_panel_vectors;
inline constexpr int kGemmPanelWidth = kGemmPanelVectors * kLanes;

// Longest block of K in sums of floats. A panel of it (144 KiB of 768 × 48 floats on AVX-512) stays with the rows of A
// in the second-level cache, and the widths of BERT models need one block. In shorter blocks the tile's sums travel
// more often.
inline constexpr std::int64_t kGemmFloatDepth = 768;

// One row has a chain of multiply-adds for each vector, but two pipes of latency 4 need eight: few rows take several
// panels at once. More chains by splitting k would change the order of summation.
constexpr int gemm_panels_at_once(std::int64_t rows, int of_one_row) {
  if (rows == 1) return kValues.gemm_panels_of_one_row != 0 ? kValues.gemm_panels_of_one_row : of_one_row;
  return rows <= kValues.gemm_rows_of_two_panels ? 2 : 1;
}

// B by panels of kGemmPanelVectors vectors, packed or where B lies.
//
// Multiply-adds want both vector pipes in every cycle, and on Intel's cores whatever else is issued may take a pipe's
// turn. Hence two iterations for each addition to the pointers, and one prefetch an iteration at a constant distance
// from the last: one iteration or four at once, A's strides known only at run time, and prefetches in bursts are all
// slower.
struct GemmPanels {
  const float* at;
  std::int64_t depth_stride;
  std::int64_t panel_stride;
  const float* next;         // to be read soon: every two iterations over k ask for two or three cache lines of it,
  std::int64_t next_stride;  // and go so many floats on
  const float* turn;         // where that has come to the end of panels that are read side by side

  static constexpr int kIterations = 2;
  static constexpr int kOfOneRow = 4;

  template <int kPanels>
  HEADLIGHT_INLINE void ask_for_line(int line) const {
#pragma GCC unroll 4
    for (int panel = 0; panel < (kValues.gemm_asks_for_panels ? kPanels : 0); ++panel)
      __builtin_prefetch(next + panel * panel_stride + line * kFloatsOfLine);
  }

  // Behind the last of panels that are read side by side begin those that come after them; behind each of the others,
  // one of themselves.
  template <int kPanels>
  HEADLIGHT_INLINE void go_on_asking() {
    next += next_stride;
    if constexpr (kPanels > 1) next += at == turn ? (kPanels - 1) * panel_stride : 0;
  }

  // What read(from) makes of the kLanes words of each vector, panel by panel.
  template <int kVectors, class Read>
  HEADLIGHT_INLINE void read_vectors(Vec (&to)[kVectors], const Read& read) const {
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v)
      to[v] = read(at + v / kGemmPanelVectors * panel_stride + v % kGemmPanelVectors * kLanes);
  }

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void load(Vec (&to)[kVectors], int iteration) {
    constexpr int kPanels = divide_up(kVectors, kGemmPanelVectors);
    read_vectors(to, [](const float* from) { return headlight::HEADLIGHT_TARGET::load(from); });
    at += depth_stride;
    ask_for_line<kPanels>(iteration);
    if (iteration == 0) return;
    // With few rows, few tiles share the fetching of the next panel: two tiles three lines each.
    if constexpr (kRows < kGemmTileRows && kGemmPanelVectors == 3 && kVectors >= 3) ask_for_line<kPanels>(2);
    go_on_asking<kPanels>();
  }
};

// out ← α · sum, or α · (out + sum). What a finish knows it reads from the tile's memory, when the sums are done: kept
// in registers meanwhile, it would take them from the loop over k.
struct GemmSums {
  const kernels::GemmTile& tile;

  HEADLIGHT_INLINE explicit GemmSums(const kernels::GemmTile& of) : tile(of) {}

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void end(const A&, const B&, const Vec (&sums)[kRows][kVectors]) const {
    const Vec factor = broadcast(tile.alpha);
    const std::int64_t stride = tile.out_stride;
    float* row = tile.out;
    if (tile.accumulate) {
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r, row += stride) {
#pragma GCC unroll 12
        for (int v = 0; v < kVectors; ++v)
          store(mul(factor, add(load(row + v * kLanes), sums[r][v])), row + v * kLanes);
      }
      return;
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r, row += stride) {
#pragma GCC unroll 12
      for (int v = 0; v < kVectors; ++v) store(mul(factor, sums[r][v]), row + v * kLanes);
    }
  }
};

// GemmNumbers::tiles.
struct GemmTileTable {
  kernels::GemmTileFunction tiles[kGemmTileRows * kGemmPanelVectors + 3];
};
// Those of float32, which each instruction set has.
extern const GemmTileTable gemm_float_tiles;

// Where GemmNumbers::tiles has the tile of so many vectors of one panel (the last may have fewer), or of
// gemm_panels_at_once(rows) panels.
HEADLIGHT_INLINE std::int64_t gemm_tile_index(std::int64_t tile_rows, std::int64_t rows, std::int64_t vectors) {
  return (smaller(vectors, kGemmPanelVectors + 1) - 1) * tile_rows + rows - 1;
}

}  // namespace headlight::HEADLIGHT_TARGET
