// Panels whose words of four bytes hold several numbers of a column each, which are widened in as many steps of k.
#pragma once

#include <cstdint>

#include "kernels/gemm/tile-inl.h"
#include "kernels/numbers-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// What is known to Words alone: kSteps, and what a step multiplies of the kLanes words at `from`, widened(from, step).
template <class Words>
struct GemmWordPanels : GemmPanels {
  static constexpr bool kWidens = true;

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void load(Vec (&to)[kVectors], int step) {
    constexpr int kPanels = divide_up(kVectors, kGemmPanelVectors);
    this->read_vectors(to, [&](const float* from) { return Words::widened(from, step); });
    if (step < 2) ask_for_line<kPanels>(step);
    if (step + 1 < Words::kSteps) return;
    at += depth_stride;
    this->template go_on_asking<kPanels>();
  }
};

}  // namespace headlight::HEADLIGHT_TARGET
