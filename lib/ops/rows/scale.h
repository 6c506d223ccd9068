// Rows by a factor.
#pragma once

#include "headlight/engine.h"
#include "headlight/view.h"

namespace headlight::ops {

// y = factor · x + added, where that is given; all [N, E], y may be x or added.
void scale_rows(Engine& engine, View<const float, 2> x, float factor, View<const float, 2> added, View<float, 2> y);

}  // namespace headlight::ops
