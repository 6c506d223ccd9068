// Panels whose words of four bytes hold several numbers of a column each, widened in as many iterations over k.
#pragma once

#include <cstdint>

#include "kernels/gemm/tile-inl.h"
#include "kernels/numbers-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// What is known to Words alone: kIterations, and what an iteration multiplies of the kLanes words at `from`,
// widened(from, iteration).
template <class Words>
struct GemmWordPanels : GemmPanels {
  static constexpr bool kWidens = true;

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void load(Vec (&to)[kVectors], int iteration) {
    constexpr int kPanels = divide_up(kVectors, kGemmPanelVectors);
    this->read_vectors(to, [&](const float* from) { return Words::widened(from, iteration); });
    if (iteration < 2) ask_for_line<kPanels>(iteration);
    if (iteration + 1 < Words::kIterations) return;
    at += depth_stride;
    this->template go_on_asking<kPanels>();
  }
};

}  // namespace headlight::HEADLIGHT_TARGET
