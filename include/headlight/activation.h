// Pointwise non-linearities.
#pragma once

#include "headlight/activation_kind.h"
#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/typed_view.h"

namespace headlight {

// y [N, E] = activation(x [N, E]); y may be x itself. Last strides are 1. NaN propagates. Each is of float32, bfloat16
// or float16, as with all operations on rows (normalization.h).
HEADLIGHT_API void activate(Engine& engine, Activation activation, const TypedView<2>& x, const MutableTypedView<2>& y);

// The gradient by x of a sum whose gradient by activate(x) is y_gradient: x_gradient = y_gradient ∘ activation′(x); all
// [N, E]. x_gradient may be x or y_gradient. At 0 relu′ is 0; for a NaN it is 1, as in PyTorch. The derivatives
// of GELU and SiLU are off by at most 3e-7.
HEADLIGHT_API void activate_backward(Engine& engine, Activation activation, const TypedView<2>& x,
                                     const TypedView<2>& y_gradient, const MutableTypedView<2>& x_gradient);

}  // namespace headlight
