// Soft caps of rows. Arguments come checked from the layer.
#pragma once

#include "headlight/engine.h"
#include "headlight/view.h"

namespace headlight::ops {

// y = cap · tanh(factor · x / cap), cap > 0; both [N, E], y may be x.
void cap_rows(Engine& engine, float factor, float cap, View<const float, 2> x, View<float, 2> y);

// x_gradient = factor · (1 − (y / cap)²) · y_gradient; all [N, E], x_gradient may be either input.
void cap_rows_backward(Engine& engine, float factor, float cap, View<const float, 2> y, View<const float, 2> y_gradient,
                       View<float, 2> x_gradient);

}  // namespace headlight::ops
