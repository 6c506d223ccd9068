// Panels whose words of four bytes hold several numbers of a column each, which are widened in two steps of k.
#pragma once

#include <cstdint>

#include "kernels/gemm_tile-inl.h"
#include "kernels/numbers-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// What is known to Words alone: what a step multiplies of the kLanes words at `from`, Words::widened(from, step).
template <class Words>
struct GemmWordPanels : GemmPanels {
  static constexpr bool kWidens = true;

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void load(Vec (&to)[kVectors], int step) {
    constexpr int kPanels = divide_up(kVectors, kGemmPanelVectors);
#pragma GCC unroll 12
    for (int v = 0; v < kVectors; ++v) {
      const float* panel = at + v / kGemmPanelVectors * panel_stride;
      to[v] = Words::widened(panel + v % kGemmPanelVectors * kLanes, step);
    }
    ask_for_line<kPanels>(step);
    if (step == 0) return;
    at += depth_stride;
    next += next_step;
  }
};

}  // namespace headlight::HEADLIGHT_TARGET
