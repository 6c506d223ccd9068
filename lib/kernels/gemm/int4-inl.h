// Products of integers of 4 bits by integers of 8: eight of a column of B in each word, in groups of 32 with a scale.
//
//   a_ik ≈ s_ig p_ik   p in −127 … 127      b_kj ≈ t_gj q_kj   q in −7 … 7      g = ⌊k / 32⌋
//
//   Σ_k a_ik b_kj ≈ Σ_g s_ig t_gj D_igj,   D_igj = Σ_k p_ik q_kj = Σ_k p_ik u_kj − 8 Σ_k p_ik,   u = q + 8
//
// D is exact in any order, and so is D · t: 15 bits by 8. What is rounded, by s and in the sum over g, is never fused,
// so that every instruction set has the same bits.
//
// A as floats, with the bits of gemm() over the widened B, cannot read B as fast as it comes: the third-level cache
// gives the integers of one row's product sooner than multiply-adds of floats take them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/gemm/int4_quantize-inl.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/quads-inl.h"
#include "kernels/gemm/tile-inl.h"
#include "kernels/gemm/words-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// The numbers of half a word as bytes, or widened to pairs, first the even bytes.
struct GemmInt4Panels : GemmWordPanels<GemmInt4Panels> {
  static constexpr int kIterations = 2 * kInt8WordsOfA;
  static constexpr int kOfOneRow = 2;  // sums of a group and of all: four panels' fill the registers

  static HEADLIGHT_INLINE Vec widened(const float* from, int iteration) {
    IntVec words = as_int(headlight::HEADLIGHT_TARGET::load(from));
    if (iteration >= kInt8WordsOfA) words = shift_right<4>(words);
    const IntVec bytes = and_int(words, broadcast_int(0x0f0f0f0f));
    if constexpr (kFeature.dots_bytes) return as_float(bytes);
    return as_float(iteration % 2 == 0 ? even_bytes(bytes) : odd_bytes(bytes));
  }
  static HEADLIGHT_INLINE Vec multiply_add(Vec left, Vec right, Vec sum) {
    if constexpr (kFeature.dots_bytes) return as_float(dot_bytes(as_int(right), as_int(left), as_int(sum)));
    return as_float(dot_i16(as_int(right), as_int(left), as_int(sum)));
  }
  static HEADLIGHT_INLINE Vec multiply_quads(Vec left, Vec right, Vec sum) {
    return as_float(multiply_quads_of_bytes(as_int(left), as_int(right), as_int(sum)));
  }
};

// From the integers of a group to floats, (D · t) · s, added up.
struct GemmInt4Sums : GemmSums {
  using GemmSums::GemmSums;

  static constexpr std::int64_t kGroupsAhead = 8;  // as far as the words that are asked for

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void begin_group(std::int64_t group, Vec (&sums)[kRows][kVectors]) const {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const Vec minus_zeros = broadcast(tile.a[r * tile.a_stride + tile.row_sums + group]);
#pragma GCC unroll 12
      for (int v = 0; v < kVectors; ++v) sums[r][v] = minus_zeros;
    }
  }
  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void end_group(std::int64_t group, const Vec (&sums)[kRows][kVectors],
                                  Vec (&totals)[kRows][kVectors]) const {
    const auto* const of_group = static_cast<const std::uint16_t*>(tile.column_scales) + group * tile.group_stride;
    // One row whose B comes from the third-level cache would wait for the scales without it.
    constexpr int kPanels = divide_up(kVectors, kGemmPanelVectors);
    for (int panel = 0; panel < kPanels; ++panel) {
      const std::uint16_t* const next = of_group + panel * tile.panel_scales + kGroupsAhead * tile.group_stride;
      for (int at = 0; at < kGemmPanelWidth; at += 2 * static_cast<int>(kFloatsOfLine)) __builtin_prefetch(next + at);
    }
    Vec of_columns[kVectors];
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) {
      of_columns[v] = load_bf16(of_group + v / kGemmPanelVectors * tile.panel_scales +
                                v % kGemmPanelVectors * std::int64_t{kLanes});
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const Vec of_row = broadcast(tile.a[r * tile.a_stride + tile.row_scales + group]);
#pragma GCC unroll 12
      for (int v = 0; v < kVectors; ++v) {
        totals[r][v] = add(totals[r][v], mul(mul(to_float(as_int(sums[r][v])), of_columns[v]), of_row));
      }
    }
  }
};

// As RegisterTile, with sums that end with each group and are added to others.
struct GemmInt4Tile {
  static constexpr int kMostRows = kValues.int4_tile_rows;

  TileRows a;
  GemmInt4Panels b;
  std::int64_t depth;  // whole words
  GemmInt4Sums finish;

  template <int kRows, int kVectors>
  static void run(const GemmInt4Tile& tile) noexcept {
    constexpr int kIterations = GemmInt4Panels::kIterations;
    Vec totals[kRows][kVectors];
    clear_sums(totals);
    const TileRows::Reader<kRows> a(tile.a);
    using Pairs = std::conditional_t<kFeature.multiplies_quads, RowPairs<kRows>, const TileRows&>;
    [[maybe_unused]] const Pairs pairs(tile.a);
    GemmInt4Panels b = tile.b;
    const std::int64_t depth = tile.depth;
    std::int64_t k = 0;
    for (std::int64_t group = 0; k < depth; ++group) {
      Vec sums[kRows][kVectors];
      tile.finish.begin_group(group, sums);
      const std::int64_t end = smaller(k + kInt4WordsOfGroup, depth);
      if constexpr (kFeature.multiplies_quads && kRows > 1) {
        QuadSums<kRows, kVectors> quads;
        quads.set(sums);
        for (; k < end; k += 2) quads.add_two_words(pairs, b, k);
        quads.get(sums);
      }
      for (; k < end; k += kIterations) {
#pragma GCC unroll 4
        for (int iteration = 0; iteration < kIterations; ++iteration) tile_iteration(a, b, k, iteration, sums);
      }
      tile.finish.end_group(group, sums, totals);
    }
    tile.finish.end(tile.a, tile.b, totals);
  }
};

struct Int4 {
  using Tile = GemmInt4Tile;
  static constexpr std::int64_t kOfWord = kInt4OfWord;
  static constexpr std::int64_t kIterationsOfWord = GemmInt4Panels::kIterations;
  static constexpr std::int64_t kMaxDepth = kernels::kInt8Depth;
  static constexpr std::int64_t kDepthUnit = kInt4Group;
  static constexpr bool kRoundsA = true;
  static constexpr bool kReadsBFloat16 = false;

  static std::int64_t rounded_row(std::int64_t depth) noexcept {
    return gemm_packed_row(int4_row_scales(depth) + 2 * int4_groups(depth));
  }
  static void round_rows(const kernels::GemmBlock& block, float* to) noexcept {
    with_floats_or_bfloat16(block.a_type, [&](auto numbers) { round_rows_of<decltype(numbers)>(block, to); });
  }
  template <class Numbers>
  static void round_rows_of(const kernels::GemmBlock& block, float* to) noexcept {
    const std::int64_t stride = rounded_row(block.depth);
    if (block.a_depth_stride == 1) {
      const auto* a = static_cast<const typename Numbers::Storage*>(block.a);
      for (std::int64_t i = 0; i < block.rows; ++i) {
        store_int4_row<Numbers>(a + i * block.a_row_stride, block.depth, to + i * stride);
      }
      return;
    }
    walk_turned_rows<Numbers>(block, [&](const TurnedRows<Numbers>& numbers, std::int64_t first) {
      store_int4_turned_rows(numbers, to + first * stride, stride);
    });
  }

  static void find_scales(const kernels::GemmBlock& block, std::int64_t first_word, std::int64_t, std::int64_t column,
                          kernels::GemmTile& tile) noexcept {
    const kernels::Operand& b = block.b;
    const std::int64_t at = block.b_column + column, groups = int4_groups(block.depth);
    const std::int64_t first_group = first_word * kOfWord / kInt4Group;
    tile.group_stride = smaller(kGemmPanelWidth, b.stride - at);
    tile.column_scales = b.group_scales(block.depth) + at * groups + first_group * tile.group_stride;
    tile.panel_scales = kGemmPanelWidth * groups;
    tile.row_scales = int4_row_scales(block.depth) + first_group - first_word * kIterationsOfWord;
    tile.row_sums = tile.row_scales + groups;
  }

  static constexpr auto pack_columns = HEADLIGHT_SET::pack_int4_columns;
};

}  // namespace headlight::HEADLIGHT_TARGET
