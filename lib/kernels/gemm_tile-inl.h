// The micro-kernel: a tile of C in registers, one rank-1 update for each k.
#pragma once

#include <cstdint>

#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Rows of a tile. Tiles are two vectors wide, so 2 · rows accumulators, two vectors of B and one broadcast of A share
// the registers: 12 rows fill 27 of 32 (AVX-512, NEON), 6 rows 15 of 16 (AVX2, and SSE4 with its separate product). Per
// k a 12-row tile issues 24 multiply-adds (12 cycles on two pipes) and 14 loads (7 cycles): the loads hide. Measured:
// 14 × 2, 8 × 3 and 6 × 4 vectors are equal on AVX-512, 7 × 4 and 24 × 1 slower; on AVX2 4 × 3 spills with clang.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kGemmTileRows = 12;
inline constexpr bool kGemmManyRegisters = true;
#else
inline constexpr int kGemmTileRows = 6;
inline constexpr bool kGemmManyRegisters = false;
#endif
inline constexpr int kGemmPanelWidth = 2 * kLanes;
inline constexpr int kGemmLine = 16;  // floats of a cache line

// One row has two chains of multiply-adds, but two pipes of four cycles need eight: few rows take several panels at
// once. More chains by splitting k would change the order of summation.
constexpr int gemm_panels_at_once(std::int64_t rows) {
  return rows == 1 ? 4 : rows == 2 || (rows == 3 && kGemmManyRegisters) ? 2 : 1;
}

struct GemmTile {
  std::int64_t depth;
  const float* a;  // rows, a_stride apart
  std::int64_t a_stride;
  const float* b;
  std::int64_t b_depth_stride;
  std::int64_t b_panel_stride;
  const float* next_b;       // to be read soon: every two steps of k ask for two cache lines of it,
  std::int64_t next_b_step;  // and go so many floats on
  float* out;
  std::int64_t out_stride;
  float alpha;
  bool accumulate;  // out = α · (out + sum), otherwise α · sum
};

// One pointer for three rows of A: with one for each, clang spills.
inline constexpr int kGemmRowsEach = 3;

template <int kRows, int kPanels>
HEADLIGHT_INLINE void gemm_step(const float* const* a, std::int64_t a_stride, std::int64_t k, const float* b,
                                std::int64_t b_panel_stride, Vec (&sums)[kRows][2 * kPanels]) {
  constexpr int kVectors = 2 * kPanels;
  Vec right[kVectors];
#pragma GCC unroll 8
  for (int vector = 0; vector < kVectors; ++vector) {
    right[vector] = load(b + (vector / 2) * b_panel_stride + (vector % 2) * kLanes);
  }
#pragma GCC unroll 12
  for (int row = 0; row < kRows; ++row) {
    const Vec left = broadcast(a[row / kGemmRowsEach][(row % kGemmRowsEach) * a_stride + k]);
#pragma GCC unroll 8
    for (int vector = 0; vector < kVectors; ++vector) {
      sums[row][vector] = fma(left, right[vector], sums[row][vector]);
    }
  }
}

// Multiply-adds want both vector pipes in every cycle, and on Intel's cores whatever else is issued may take a pipe's
// turn. Hence two steps for each addition to the pointers, and one prefetch a step at a constant distance from the
// last. Measured there, B in L2: 99 % of the peak; 91 % with each step on its own and A's two strides known only at run
// time; 94 % with four steps at once; 85–94 % with the prefetches in bursts, one for every 8 to 32 steps.
template <int kRows, int kPanels>
void gemm_tile(const GemmTile& tile) noexcept {
  constexpr int kVectors = 2 * kPanels;
  constexpr int kPointers = (kRows + kGemmRowsEach - 1) / kGemmRowsEach;
  const std::int64_t a_stride = tile.a_stride;
  const std::int64_t b_step = tile.b_depth_stride;
  const std::int64_t panel_stride = tile.b_panel_stride;
  const float* a[kPointers];
#pragma GCC unroll 4
  for (int pointer = 0; pointer < kPointers; ++pointer) a[pointer] = tile.a + pointer * kGemmRowsEach * a_stride;
  const float* b = tile.b;
  const float* next = tile.next_b;
  const std::int64_t next_step = tile.next_b_step;

  Vec sums[kRows][kVectors];
#pragma GCC unroll 12
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 8
    for (int vector = 0; vector < kVectors; ++vector) sums[row][vector] = zero();
  }
  std::int64_t left = tile.depth;
  for (; left >= 2; left -= 2) {
    gemm_step<kRows, kPanels>(a, a_stride, 0, b, panel_stride, sums);
#pragma GCC unroll 4
    for (int panel = 0; panel < kPanels; ++panel) __builtin_prefetch(next + panel * panel_stride);
    gemm_step<kRows, kPanels>(a, a_stride, 1, b + b_step, panel_stride, sums);
#pragma GCC unroll 4
    for (int panel = 0; panel < kPanels; ++panel) __builtin_prefetch(next + panel * panel_stride + kGemmLine);
    next += next_step;
#pragma GCC unroll 4
    for (int pointer = 0; pointer < kPointers; ++pointer) a[pointer] += 2;
    b += 2 * b_step;
  }
  if (left > 0) gemm_step<kRows, kPanels>(a, a_stride, 0, b, panel_stride, sums);

  float* out = tile.out;
  const Vec alpha = broadcast(tile.alpha);
  if (tile.accumulate) {
#pragma GCC unroll 12
    for (int row = 0; row < kRows; ++row, out += tile.out_stride) {
#pragma GCC unroll 8
      for (int vector = 0; vector < kVectors; ++vector) {
        store(mul(alpha, add(load(out + vector * kLanes), sums[row][vector])), out + vector * kLanes);
      }
    }
    return;
  }
#pragma GCC unroll 12
  for (int row = 0; row < kRows; ++row, out += tile.out_stride) {
#pragma GCC unroll 8
    for (int vector = 0; vector < kVectors; ++vector) store(mul(alpha, sums[row][vector]), out + vector * kLanes);
  }
}

using GemmTileFunction = void (*)(const GemmTile&) noexcept;

// By rows − 1.
inline constexpr GemmTileFunction kGemmTiles[] = {
    gemm_tile<1, 1>, gemm_tile<2, 1>, gemm_tile<3, 1>, gemm_tile<4, 1>,  gemm_tile<5, 1>,  gemm_tile<6, 1>,
#if defined(__AVX512F__) || defined(__aarch64__)
    gemm_tile<7, 1>, gemm_tile<8, 1>, gemm_tile<9, 1>, gemm_tile<10, 1>, gemm_tile<11, 1>, gemm_tile<12, 1>,
#endif
};

// The same over gemm_panels_at_once(rows) panels.
inline constexpr GemmTileFunction kGemmWideTiles[] = {
    gemm_tile<1, gemm_panels_at_once(1)>,
    gemm_tile<2, gemm_panels_at_once(2)>,
    gemm_tile<3, gemm_panels_at_once(3)>,
};

}  // namespace headlight::HEADLIGHT_TARGET
