// The kernels of one type of numbers, from what is known to `Numbers` alone:
//
//   kOfWord       numbers of a column of B in a word of four bytes
//   Tile          the tile that multiplies them, a RegisterTile or one like it, or an AmxTile, and kIterationsOfWord,
//                 how many of its iterations over K a word is
//   kMaxDepth     numbers of the longest block of K; kDepthUnit: what all but the last are a multiple of, if not 8
//   kTilesJoinBlocks  whether a sum in tile registers goes on from one block of K to the next
//   kRoundsA      whether the tile reads rows of A that rounded_row() and round_rows() made, kIterationsOfWord floats a
//                 word, and B only as panels; then kReadsBFloat16 as in GemmKernels
//   pack_panel()  a panel of one block of K, beside kTurned, which is GemmNumbers::turned_tiles; or pack_columns(), all
//                 blocks of K
//   widen()       where panels are widened as a whole, and Tile is float32's
//   find_scales() where a tile's finish needs to know what lies beside A and B
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/gemm/amx-inl.h"
#include "kernels/gemm/amx_block-inl.h"
#include "kernels/gemm/block-inl.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/numbers.h"
#include "kernels/gemm/plan-inl.h"
#include "kernels/gemm/tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {  // of the one file that includes this

template <class Tile>
HEADLIGHT_INLINE Tile tile_from(const kernels::GemmTile& tile) {
  const GemmPanels panels{tile.b, tile.b_depth_stride, tile.b_panel_stride, tile.next, tile.next_stride, tile.turn};
  return Tile{{tile.a, tile.a_stride}, {panels}, tile.depth, decltype(Tile::finish)(tile)};
}

// Everything inlined: the tile is read from where it lies.
template <class Tile, int kRows, int kVectors>
[[gnu::flatten]] void run_tile(const kernels::GemmTile& tile) noexcept {
  Tile::template run<kRows, kVectors>(tile_from<Tile>(tile));
}

// Rows of the largest tile.
template <class Tile>
constexpr int tile_rows() {
  if constexpr (requires { Tile::kMostRows; }) return Tile::kMostRows;
  return kGemmTileRows;
}

template <class Tile, int... kShapes>
constexpr GemmTileTable tiles_of(std::integer_sequence<int, kShapes...>) {
  constexpr auto vectors = [](int rows) {
    return gemm_panels_at_once(rows, decltype(Tile::b)::kOfOneRow) * kGemmPanelVectors;
  };
  constexpr int kRows = tile_rows<Tile>();
  return {{run_tile<Tile, kShapes % kRows + 1, kShapes / kRows + 1>..., run_tile<Tile, 1, vectors(1)>,
           run_tile<Tile, 2, vectors(2)>, run_tile<Tile, smaller(3, kRows), vectors(3)>}};
}
template <class Tile>
constexpr GemmTileTable kTilesOf =
    tiles_of<Tile>(std::make_integer_sequence<int, tile_rows<Tile>() * kGemmPanelVectors>());

template <class Numbers>
constexpr std::int64_t depth_unit() {
  if constexpr (requires { Numbers::kDepthUnit; }) return Numbers::kDepthUnit;
  return 8;
}

template <class Numbers>
constexpr auto find_scales_of() -> decltype(kernels::GemmNumbers::find_scales) {
  if constexpr (requires { &Numbers::find_scales; }) return Numbers::find_scales;
  return nullptr;
}

// float32's where panels are widened.
template <class Numbers>
constexpr const kernels::GemmTileFunction* tiles_of_numbers() {
  if constexpr (requires { &Numbers::widen; })
    return gemm_float_tiles.tiles;
  else
    return kTilesOf<typename Numbers::Tile>.tiles;
}

template <class Numbers>
constexpr kernels::GemmNumbers gemm_numbers() {
  using Tile = typename Numbers::Tile;
  constexpr std::int64_t kWordsOfPrefetch = decltype(Tile::b)::kIterations / Numbers::kIterationsOfWord;
  static_assert((kWordsOfPrefetch & (kWordsOfPrefetch - 1)) == 0, "look_ahead() rounds to multiples by bits");
  kernels::GemmNumbers numbers{Numbers::kOfWord,
                               Numbers::kIterationsOfWord,
                               kWordsOfPrefetch,
                               Numbers::kMaxDepth,
                               depth_unit<Numbers>(),
                               Numbers::kRoundsA,
                               decltype(Tile::b)::kOfOneRow,
                               tile_rows<Tile>(),
                               tiles_of_numbers<Numbers>(),
                               HEADLIGHT_EPILOGUE::gemm_finish,
                               nullptr,
                               nullptr,
                               nullptr,
                               find_scales_of<Numbers>()};
  if constexpr (Numbers::kOfWord == 1) {
    numbers.pack_panel = Numbers::pack_panel;
    numbers.turned_tiles = Numbers::kTurned;
  }
  if constexpr (requires { &Numbers::widen; }) numbers.widen = Numbers::widen;
  return numbers;
}

// Whether tiles lie in registers of their own kind.
template <class Numbers>
inline constexpr bool kHasTileRegisters = requires {
  typename Numbers::Tile::Registers;
};

// What AmxBlock must know of such numbers.
template <class Numbers>
struct AmxNumbers {
  using Finish = typename Numbers::Tile::Finish;
  static constexpr std::int64_t of_word = Numbers::kOfWord;
  static constexpr std::int64_t a_of_word = Numbers::kIterationsOfWord;
  static constexpr std::int64_t iteration_words = 16;
  // 32 KiB of two vectors of columns; and 768 KiB of 128 rows.
  static constexpr std::int64_t most_piece_words = 16 * iteration_words;
  static constexpr std::int64_t most_span_words = 1536;
  static constexpr int tile_words = 16;
  static constexpr std::int64_t unpacked = 0;  // B is read as it lies
  static constexpr std::int64_t longest = Numbers::kMaxDepth;
  static constexpr std::int64_t depth_unit = HEADLIGHT_TARGET::depth_unit<Numbers>();
  static constexpr bool joins_blocks = Numbers::kTilesJoinBlocks;
  static constexpr std::int64_t tile_rows = Numbers::Tile::kMostRows;
  // Not whether the next is null: with the undefined-behaviour sanitizer no compiler knows an address.
  static constexpr bool finds_scales = requires { &Numbers::find_scales; };
  static constexpr decltype(kernels::GemmNumbers::find_scales) find_scales = find_scales_of<Numbers>();
};

template <class Numbers>
constexpr kernels::GemmNumbers kGemmNumbers = gemm_numbers<Numbers>();

template <class Numbers>
void block(const kernels::GemmBlock& block) noexcept {
  if constexpr (kHasTileRegisters<Numbers>) {
    AmxBlock<AmxNumbers<Numbers>>(block).run();
  } else {
    HEADLIGHT_SET::gemm_block(kGemmNumbers<Numbers>, block);
  }
}
template <class Numbers>
std::int64_t scratch_floats(const kernels::GemmBlock& block) noexcept {
  if constexpr (kHasTileRegisters<Numbers>) {
    return AmxPlan<AmxNumbers<Numbers>>(block).scratch_floats();
  } else {
    return HEADLIGHT_SET::gemm_scratch_floats(kGemmNumbers<Numbers>, block);
  }
}

template <class Numbers>
std::int64_t depth_block(std::int64_t depth) noexcept {
  return depth_block(Numbers::kMaxDepth, depth_unit<Numbers>(), depth);
}

// Columns of B as panels, a block of K at a time.
template <class Numbers>
void pack_columns(const kernels::Operand& b, std::int64_t b_column, std::int64_t depth, std::int64_t column,
                  std::int64_t columns, const kernels::Operand& panels, float* packed,
                  bool (*is_cancelled)() noexcept) noexcept {
  const std::int64_t longest = depth_block<Numbers>(depth);
  if constexpr (requires { &Numbers::pack_columns; }) {
    Numbers::pack_columns(b, b_column, depth, column, columns, panels, packed, longest, is_cancelled);
  } else {
    for (std::int64_t first = 0; first < depth && !is_cancelled(); first += longest) {
      const std::int64_t rows = smaller(longest, depth - first);
      Numbers::pack_panel(b, first, rows, b_column, columns, packed + panels.panel_at(first, rows, column));
    }
  }
}

template <class Numbers>
constexpr kernels::GemmKernels gemm_table(int in_place_tiles, int products) {
  kernels::GemmKernels table{kLanes,
                             tile_rows<typename Numbers::Tile>(),
                             kGemmPanelWidth,
                             in_place_tiles,
                             products,
                             scratch_floats<Numbers>,
                             block<Numbers>,
                             nullptr,
                             nullptr,
                             false,
                             pack_columns<Numbers>,
                             depth_block<Numbers>};
  if constexpr (Numbers::kRoundsA) {
    table.rounded_row = Numbers::rounded_row;
    table.round_rows = Numbers::round_rows;
    table.reads_bfloat16 = Numbers::kReadsBFloat16;
  }
  return table;
}

}  // namespace
}  // namespace headlight::HEADLIGHT_TARGET
