// Products of 8-bit integers: four of a column of B in each word.
//
//   a_ik ≈ s_i (p_ik − z_i)   p in 0 … 255      b_kj ≈ t_j q_kj   q in −127 … 127
//
//   Σ_k a_ik b_kj ≈ s_i t_j D_ij,   D_ij = Σ_k p_ik q_kj − z_i Σ_k q_kj
//
// (and p − 128 for p, z − 128 for z give the same, where an instruction multiplies signed bytes alone).
// D is exact in int32, in whichever order it is summed: |p − z| ≤ 255, and 255 · 127 · kInt8Depth < 2³¹. So every
// instruction set has the same bits. vpmaddubsw, which multiplies bytes everywhere, is no way to it: its sums of two
// products saturate at 16 bits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/gemm/int8_quantize-inl.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/tile-inl.h"
#include "kernels/gemm/tile_of_words-inl.h"
#include "kernels/gemm/words-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Words of B multiplied as they are.
struct GemmInt8Words : GemmPanels {
  static HEADLIGHT_INLINE Vec multiply_add(Vec left, Vec right, Vec sum) {
    return as_float(dot_bytes(as_int(left), as_int(right), as_int(sum)));
  }
  static HEADLIGHT_INLINE Vec multiply_quads(Vec left, Vec right, Vec sum) {
    return as_float(multiply_quads_of_bytes(as_int(left), as_int(right), as_int(sum)));
  }
};

// Words of B widened to pairs, first the even bytes.
struct GemmInt8Pairs : GemmWordPanels<GemmInt8Pairs> {
  static HEADLIGHT_INLINE Vec widened(const float* from, int iteration) {
    const IntVec words = as_int(headlight::HEADLIGHT_TARGET::load(from));
    return as_float(iteration == 0 ? even_bytes(words) : odd_bytes(words));
  }
  static HEADLIGHT_INLINE Vec multiply_add(Vec left, Vec right, Vec sum) {
    return as_float(dot_i16(as_int(left), as_int(right), as_int(sum)));
  }
};

using GemmInt8Panels = std::conditional_t<kFeature.dots_bytes, GemmInt8Words, GemmInt8Pairs>;

// From the integers Σ p q of a tile to floats, ((float)D · t) · s, and on as float32 goes.
struct GemmInt8Sums : GemmSums {
  using GemmSums::GemmSums;

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void end(const A& a, const B& b, const Vec (&products)[kRows][kVectors]) const {
    const auto* const scales = static_cast<const float*>(tile.column_scales);
    const float* const sums = tile.column_sums;
    Vec values[kRows][kVectors];
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const float* const row = tile.a + r * tile.a_stride + tile.row_scales;
      const Vec scale = broadcast(row[0]);
      const IntVec zero_point = as_int(broadcast(row[1]));
#pragma GCC unroll 12
      for (int v = 0; v < kVectors; ++v) {
        const IntVec of_zero_point = mul_int(zero_point, as_int(load(sums + v * kLanes)));
        const Vec sum = to_float(sub_int(as_int(products[r][v]), of_zero_point));
        values[r][v] = mul(mul(sum, load(scales + v * kLanes)), scale);
      }
    }
    GemmSums::end(a, b, values);
  }
};

struct Int8 {
  using Tile = GemmTile<GemmInt8Panels, GemmInt8Sums>;
  static constexpr std::int64_t kOfWord = 4;
  static constexpr std::int64_t kIterationsOfWord = kInt8WordsOfA;
  static constexpr std::int64_t kMaxDepth = kernels::kInt8Depth;
  static constexpr std::int64_t kDepthUnit = 64;   // whole iterations of tile registers
  static constexpr bool kTilesJoinBlocks = false;  // int32 would overflow
  static constexpr bool kRoundsA = true;
  static constexpr bool kReadsBFloat16 = false;
  static constexpr int kProducts = kFeature.amx_products != 0 ? kFeature.amx_products : kInt8WordsOfA == 1 ? 4 : 1;

  static std::int64_t rounded_row(std::int64_t depth) noexcept { return gemm_packed_row(int8_row_scale(depth) + 2); }
  static void round_rows(const kernels::GemmBlock& block, float* to) noexcept {
    with_floats_or_bfloat16(block.a_type, [&](auto numbers) { round_rows_of<decltype(numbers)>(block, to); });
  }
  template <class Numbers>
  static void round_rows_of(const kernels::GemmBlock& block, float* to) noexcept {
    const std::int64_t stride = rounded_row(block.depth);
    if (block.a_depth_stride == 1) return round_int8_rows<Numbers>(block, to, stride);
    walk_turned_rows<Numbers>(block, [&](const TurnedRows<Numbers>& numbers, std::int64_t first) {
      round_int8_turned_rows(numbers, to + first * stride, stride);
    });
  }

  // What an iteration's tiles need beside the words: where it begins, and in which block of K.
  static void find_scales(const kernels::GemmBlock& block, std::int64_t first_word, std::int64_t depth_block,
                          std::int64_t column, kernels::GemmTile& tile) noexcept {
    const kernels::Operand& b = block.b;
    const float* const scales = b.column_scales(block.depth) + block.b_column + column;
    tile.column_scales = scales;
    tile.column_sums = scales + (1 + depth_block) * b.stride;
    tile.row_scales = int8_row_scale(block.depth) - first_word * kIterationsOfWord;
  }

  static constexpr auto pack_columns = HEADLIGHT_SET::pack_int8_columns;
};

}  // namespace headlight::HEADLIGHT_TARGET
