// Products of bfloat16 numbers: two of a column of B in each word, the first in its lower half.
//
// A is rounded to bfloat16 as it comes in, unless it is bfloat16 already. A product of two such numbers is exact in
// float32, and a sum takes the second of a pair before the first: that is what vdpbf16ps does, so every instruction set
// has its bits. But vdpbf16ps takes numbers and sums below 2⁻¹²⁶ for 0. (Intel's manual, volume 2, VDPBF16PS; AMD's
// cores: docs/history/matrix-products.md.) AMX sums in an order of its own: amx-inl.h.
//
// Arm's bfdot and bfmmla are no such sums, and so for Numerics::fast: with [x] for x rounded to odd, each pair is
// s ← [s + [a₀·b₀ + a₁·b₁]], whose error is up to 2⁻²³ a rounding, of which there are half as many; what is below 2⁻¹²⁶
// is 0 there, too. bfmmla does that with the first pair of its four numbers and then with the second, so that one row,
// by bfdot, has the bits of many. (Arm's manual, DDI 0487, shared/functions/bfloat: BFDotAdd() and BFMatMulAdd(), where
// FPCR.EBF is 0, as Linux leaves it.)
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/gemm/bfloat16_quantize-inl.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/round-inl.h"
#include "kernels/gemm/tile-inl.h"
#include "kernels/gemm/tile_of_words-inl.h"
#include "kernels/gemm/words-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Panels of pairs, multiplied as they are.
struct GemmBFloat16Pairs : GemmPanels {
  static HEADLIGHT_INLINE Vec multiply_add(Vec left, Vec right, Vec sum) { return dot_bf16(left, right, sum); }
  static HEADLIGHT_INLINE Vec multiply_quads(Vec left, Vec right, Vec sum) {
    return multiply_quads_of_bf16(left, right, sum);
  }
};

// Panels of pairs, widened a number at a time.
struct GemmBFloat16Widened : GemmWordPanels<GemmBFloat16Widened> {
  static constexpr bool kSecondFirst = true;

  static HEADLIGHT_INLINE Vec widened(const float* from, int iteration) {
    const IntVec pairs = as_int(headlight::HEADLIGHT_TARGET::load(from));
    return as_float(iteration == 0 ? and_int(pairs, broadcast_int(kUpperHalf)) : shift_left<16>(pairs));
  }
};

using GemmBFloat16Panels = std::conditional_t<kFeature.dots_bfloat16, GemmBFloat16Pairs, GemmBFloat16Widened>;

// A row of A as pairs; whole vectors of them, of which those behind the row's end are of no use.
template <class Numbers>
void round_bfloat16_pairs(const typename Numbers::Storage* from, std::int64_t count, float* to,
                          const typename Numbers::Storage* next) noexcept {
  constexpr std::int64_t kNumbers = 2 * kLanes;
  for (; count >= kNumbers; count -= kNumbers, from += kNumbers, to += kLanes, next += kNumbers) {
    ask_for_numbers<Numbers>(next, 0);
    if constexpr (sizeof(*next) == sizeof(float)) ask_for_numbers<Numbers>(next, kLanes);
    store(narrow_to_bf16(Numbers::load(from), Numbers::load(from + kLanes)), to);
  }
  if (count == 0) return;
  const int first = static_cast<int>(smaller(count, kLanes));
  const Vec second = count > kLanes ? Numbers::load_partial(from + kLanes, static_cast<int>(count) - kLanes) : zero();
  store(narrow_to_bf16(Numbers::load_partial(from, first), second), to);
}

// A row of A rounded, and still a float each; after an odd number of them 0.
template <class Numbers>
void round_bfloat16_floats(const typename Numbers::Storage* from, std::int64_t count, float* to) noexcept {
  std::int64_t k = 0;
  for (; k + kLanes <= count; k += kLanes) store(round_to_bf16(Numbers::load(from + k)), to + k);
  if (k < count) store(round_to_bf16(Numbers::load_partial(from + k, static_cast<int>(count - k))), to + k);
  if (count % 2 != 0) to[count] = 0.0f;
}

// A word of A from numbers(k), as narrow_to_bf16() would have it, or a rounded float.
template <class Numbers>
HEADLIGHT_INLINE Vec bfloat16_word(std::int64_t word, Numbers numbers) {
  if constexpr (!kFeature.dots_bfloat16) {
    return round_to_bf16(numbers(word));
  } else if constexpr (kFeature.clears_subnormal) {
    return pair_to_bf16(numbers(2 * word), numbers(2 * word + 1));
  } else {
    return pairs_of(numbers(2 * word), numbers(2 * word + 1));
  }
}

struct BFloat16 {
  using Tile = GemmTile<GemmBFloat16Panels, GemmSums>;
  static constexpr std::int64_t kOfWord = 2;
  static constexpr std::int64_t kIterationsOfWord = kFeature.dots_bfloat16 ? 1 : 2;
  static constexpr std::int64_t kMaxDepth = kGemmFloatDepth;
  static constexpr std::int64_t kDepthUnit = 32;  // whole iterations of tile registers
  static constexpr bool kTilesJoinBlocks = true;
  static constexpr bool kRoundsA = true;
  static constexpr bool kReadsBFloat16 = kIterationsOfWord == 1;
  static constexpr int kProducts = kFeature.amx_products != 0 ? kFeature.amx_products : kIterationsOfWord == 1 ? 2 : 1;

  static std::int64_t words_of_row(std::int64_t depth) noexcept { return divide_up(depth, 2) * kIterationsOfWord; }
  static std::int64_t rounded_row(std::int64_t depth) noexcept { return gemm_packed_row(words_of_row(depth)); }
  static void round_rows(const kernels::GemmBlock& block, float* to) noexcept {
    with_floats_or_bfloat16(block.a_type, [&](auto numbers) { round_rows_of<decltype(numbers)>(block, to); });
  }
  template <class Numbers>
  static void round_rows_of(const kernels::GemmBlock& block, float* to) noexcept {
    const std::int64_t depth = block.depth, stride = rounded_row(depth);
    if (block.a_depth_stride == 1) {
      const auto* a = static_cast<const typename Numbers::Storage*>(block.a);
      for (std::int64_t i = 0; i < block.rows; ++i) {
        const auto* const row = a + i * block.a_row_stride;
        if constexpr (kFeature.dots_bfloat16) {
          round_bfloat16_pairs<Numbers>(row, depth, to + i * stride,
                                        i + 1 < block.rows ? row + block.a_row_stride : row);
        } else {
          round_bfloat16_floats<Numbers>(row, depth, to + i * stride);
        }
      }
      return;
    }
    round_turned_rows<Numbers>(block, to);
  }
  // Some vectors of rows side by side: numbers that lie next to each other, rather than a cache line of each page.
  template <class Numbers>
  static void round_turned_rows(const kernels::GemmBlock& block, float* to) noexcept {
    constexpr std::int64_t kSideBySide = 4 * kLanes;
    const auto* const a = static_cast<const typename Numbers::Storage*>(block.a);
    const std::int64_t words = words_of_row(block.depth), stride = rounded_row(block.depth);
    for (std::int64_t first = 0; first < block.rows; first += kSideBySide) {
      const std::int64_t end = smaller(first + kSideBySide, block.rows);
      for (std::int64_t word = 0; word < words; word += kLanes) {
        for (std::int64_t i = first; i < end; i += kLanes) {
          const int rows = static_cast<int>(smaller(kLanes, end - i));
          const TurnedRows<Numbers> numbers{a + i, block.a_depth_stride, block.depth, rows};
          store_turned_square(word, words, rows, to + i * stride, stride,
                              [&](std::int64_t w) { return bfloat16_word(w, numbers); });
        }
      }
    }
  }

  static constexpr auto pack_panel = HEADLIGHT_SET::pack_bfloat16_panel;
};

}  // namespace headlight::HEADLIGHT_TARGET
