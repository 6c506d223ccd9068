// Gated rows: the middle of a gated feed-forward (Shazeer 2020: SwiGLU, GEGLU, ReGLU).
#pragma once

#include "headlight/activation_kind.h"
#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/typed_view.h"

namespace headlight {

// y = activation(a) ∘ b; a, b, y [N, F] of types as with all operations on rows (normalization.h). a and b may be the
// two halves of the rows [N, 2F] of one product; y may be either.
HEADLIGHT_API void gate(Engine& engine, Activation activation, const TypedView<2>& a, const TypedView<2>& b,
                        const MutableTypedView<2>& y);

// The gradients of a sum whose gradient by gate(a, b) is y_gradient: a_gradient = y_gradient ∘ b ∘ activation′(a) and
// b_gradient = y_gradient ∘ activation(a), all [N, F]. a_gradient may be a or b; b_gradient may be a, b or y_gradient.
// The derivative is that of activate_backward().
HEADLIGHT_API void gate_backward(Engine& engine, Activation activation, const TypedView<2>& a, const TypedView<2>& b,
                                 const TypedView<2>& y_gradient, const MutableTypedView<2>& a_gradient,
                                 const MutableTypedView<2>& b_gradient);

}  // namespace headlight
