// The micro-kernel: a tile of C in registers, one rank-1 update for each k.
#pragma once

#include <cstdint>

#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// A tile is so many rows by so many vectors of sums; a step of k loads those vectors of B and broadcasts an element of
// A for each row. 9 × 3 sums, three vectors and a broadcast fill 31 of 32 registers (AVX-512), 6 × 2 sums 15 of 16
// (AVX2, and SSE4 with its separate product), and two pipes of latency 4 want at least 8 sums in flight. The fewer
// loads for a product the better: Intel's cores pay for each with their clock, twice for a whole vector. GFLOP/s of one
// such core on 144 × 768 × 768: 12 × 2 (14 loads for 24 products) 176, 6 × 4 176, 8 × 3 178, 9 × 3 (12 for 27) 182–187.
// On Zen 5 12 × 2, 14 × 2, 8 × 3 and 6 × 4 are equal, 7 × 4 and 24 × 1 slower; on AVX2 4 × 3 spills with clang.
#if defined(__AVX512F__)
inline constexpr int kGemmTileRows = 9;
inline constexpr int kGemmPanelVectors = 3;
inline constexpr bool kGemmManyRegisters = true;
#elif defined(__aarch64__)
inline constexpr int kGemmTileRows = 12;
inline constexpr int kGemmPanelVectors = 2;
inline constexpr bool kGemmManyRegisters = true;
#else
inline constexpr int kGemmTileRows = 6;
inline constexpr int kGemmPanelVectors = 2;
inline constexpr bool kGemmManyRegisters = false;
#endif
inline constexpr int kGemmPanelWidth = kGemmPanelVectors * kLanes;
inline constexpr int kGemmLine = 16;  // floats of a cache line

// One row has a chain of multiply-adds for each vector, but two pipes of four cycles need eight: few rows take several
// panels at once. More chains by splitting k would change the order of summation.
constexpr int gemm_panels_at_once(std::int64_t rows) {
  if (rows == 1) return 4;
  return rows == 2 || (rows == 3 && kGemmManyRegisters && kGemmPanelVectors == 2) ? 2 : 1;
}

struct GemmTile {
  std::int64_t depth;
  const float* a;  // rows, a_stride apart
  std::int64_t a_stride;
  const float* b;
  std::int64_t b_depth_stride;
  std::int64_t b_panel_stride;
  const float* next_b;       // to be read soon: every two steps of k ask for two or three cache lines of it,
  std::int64_t next_b_step;  // and go so many floats on
  float* out;
  std::int64_t out_stride;
  float alpha;
  bool accumulate;  // out = α · (out + sum), otherwise α · sum
};

// One pointer for three rows of A: with one for each, clang spills.
inline constexpr int kGemmRowsEach = 3;

// A sum stays in its register, and the steps are done in the order in which they are written. Of 9 × 3 sums g++ 12
// would otherwise put some where an operand was and spill others: 147 GFLOP/s instead of 182.
HEADLIGHT_INLINE void gemm_keep(Vec& sum) {
#if defined(__AVX512F__)
  auto native = to_native(sum);
  asm volatile("" : "+v"(native));
  sum = from_native(native);
#else
  static_cast<void>(sum);
#endif
}

template <int kRows, int kPanels, int kVectors>
HEADLIGHT_INLINE void gemm_step(const float* const* a, std::int64_t a_stride, std::int64_t k, const float* b,
                                std::int64_t b_panel_stride, Vec (&sums)[kRows][kPanels * kVectors]) {
  Vec right[kPanels * kVectors];
#pragma GCC unroll 12
  for (int vector = 0; vector < kPanels * kVectors; ++vector) {
    right[vector] = load(b + (vector / kVectors) * b_panel_stride + (vector % kVectors) * kLanes);
  }
#pragma GCC unroll 12
  for (int row = 0; row < kRows; ++row) {
    const Vec left = broadcast(a[row / kGemmRowsEach][(row % kGemmRowsEach) * a_stride + k]);
#pragma GCC unroll 12
    for (int vector = 0; vector < kPanels * kVectors; ++vector) {
      sums[row][vector] = fma(left, right[vector], sums[row][vector]);
      gemm_keep(sums[row][vector]);
    }
  }
}

// Multiply-adds want both vector pipes in every cycle, and on Intel's cores whatever else is issued may take a pipe's
// turn. Hence two steps for each addition to the pointers, and one prefetch a step at a constant distance from the
// last. Measured there, B in L2: 99 % of the peak; 91 % with each step on its own and A's two strides known only at run
// time; 94 % with four steps at once; 85–94 % with the prefetches in bursts, one for every 8 to 32 steps.
template <int kRows, int kPanels, int kPanelVectors>
void gemm_tile(const GemmTile& tile) noexcept {
  constexpr int kVectors = kPanels * kPanelVectors;
  constexpr int kPointers = divide_up(kRows, kGemmRowsEach);
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
#pragma GCC unroll 12
    for (int vector = 0; vector < kVectors; ++vector) sums[row][vector] = zero();
  }
  std::int64_t left = tile.depth;
  for (; left >= 2; left -= 2) {
    gemm_step<kRows, kPanels, kPanelVectors>(a, a_stride, 0, b, panel_stride, sums);
#pragma GCC unroll 4
    for (int panel = 0; panel < kPanels; ++panel) __builtin_prefetch(next + panel * panel_stride);
    gemm_step<kRows, kPanels, kPanelVectors>(a, a_stride, 1, b + b_step, panel_stride, sums);
#pragma GCC unroll 4
    for (int panel = 0; panel < kPanels; ++panel) __builtin_prefetch(next + panel * panel_stride + kGemmLine);
    // With few rows, few tiles share the fetching of the next panel: two tiles three lines each. B from the third-level
    // cache: 8 × 384 × 1536 73 -> 86 GFLOP/s, 16 × 384 × 1536 110 -> 121.
    if constexpr (kRows < kGemmTileRows && kPanelVectors == 3) {
#pragma GCC unroll 4
      for (int panel = 0; panel < kPanels; ++panel) __builtin_prefetch(next + panel * panel_stride + 2 * kGemmLine);
    }
    next += next_step;
#pragma GCC unroll 4
    for (int pointer = 0; pointer < kPointers; ++pointer) a[pointer] += 2;
    b += 2 * b_step;
  }
  if (left > 0) gemm_step<kRows, kPanels, kPanelVectors>(a, a_stride, 0, b, panel_stride, sums);

  float* out = tile.out;
  const Vec alpha = broadcast(tile.alpha);
  if (tile.accumulate) {
#pragma GCC unroll 12
    for (int row = 0; row < kRows; ++row, out += tile.out_stride) {
#pragma GCC unroll 12
      for (int vector = 0; vector < kVectors; ++vector) {
        store(mul(alpha, add(load(out + vector * kLanes), sums[row][vector])), out + vector * kLanes);
      }
    }
    return;
  }
#pragma GCC unroll 12
  for (int row = 0; row < kRows; ++row, out += tile.out_stride) {
#pragma GCC unroll 12
    for (int vector = 0; vector < kVectors; ++vector) store(mul(alpha, sums[row][vector]), out + vector * kLanes);
  }
}

using GemmTileFunction = void (*)(const GemmTile&) noexcept;

// By rows − 1.
template <int kVectors>
inline constexpr GemmTileFunction kGemmTiles[] = {
    gemm_tile<1, 1, kVectors>,  gemm_tile<2, 1, kVectors>,  gemm_tile<3, 1, kVectors>,
    gemm_tile<4, 1, kVectors>,  gemm_tile<5, 1, kVectors>,  gemm_tile<6, 1, kVectors>,
#if defined(__AVX512F__) || defined(__aarch64__)
    gemm_tile<7, 1, kVectors>,  gemm_tile<8, 1, kVectors>,  gemm_tile<9, 1, kVectors>,
#endif
#if defined(__aarch64__)
    gemm_tile<10, 1, kVectors>, gemm_tile<11, 1, kVectors>, gemm_tile<12, 1, kVectors>,
#endif
};

// The same over gemm_panels_at_once(rows) panels.
inline constexpr GemmTileFunction kGemmWideTiles[] = {
    gemm_tile<1, gemm_panels_at_once(1), kGemmPanelVectors>,
    gemm_tile<2, gemm_panels_at_once(2), kGemmPanelVectors>,
    gemm_tile<3, gemm_panels_at_once(3), kGemmPanelVectors>,
};

// By vectors − 1: the last panel may have fewer.
inline constexpr const GemmTileFunction* kGemmTilesOf[] = {
    kGemmTiles<1>,
    kGemmTiles<2>,
#if defined(__AVX512F__)
    kGemmTiles<3>,
#endif
};

}  // namespace headlight::HEADLIGHT_TARGET
