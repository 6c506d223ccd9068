// Dropout: elements set to zero at random, the others scaled up, so that their expectation stays (Srivastava et al.
// 2014).
#pragma once

#include <cstdint>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/typed_view.h"

namespace headlight {

// Which elements go is a function of seed, stream and the element's place alone: no mask is stored, for whoever has
// these three numbers draws it again. Each use of dropout within a step, and each step, needs a stream of its own.
struct Dropout {
  // Of dropping an element, in [0, 1). 0: none is dropped and nothing is drawn.
  float probability = 0.0f;
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
};

// y_ij = (x_ij / (1 − probability) where kept, else 0) + residual_ij where given; x, y, residual [N, E], last strides
// 1. y may be x or residual. The backward pass is the same call: x_gradient from y_gradient, without a residual. Each
// is of float32, bfloat16 or float16, as with all operations on rows (normalization.h). With a probability of 0, y = x
// + residual.
//
// Kept when the word ≥ ⌊probability · 2³²⌋, the word being number j mod 4 of Philox4x32-10 (Salmon et al. 2011) with
// the seed as key and the counter (⌊j/4⌋, i mod 2³², ⌊i/2³²⌋, stream). A dropped NaN is 0.
HEADLIGHT_API void dropout(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y, const Dropout& dropout,
                           const TypedView<2>& residual = {});

}  // namespace headlight
