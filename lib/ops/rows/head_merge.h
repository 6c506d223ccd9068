// Heads weighted or gated, all rows on all workers. Arguments come checked from the layer.
#pragma once

#include "headlight/engine.h"
#include "headlight/tensor.h"

namespace headlight::ops {

// y [N, D] = Σ_h weights(n, h) · head h of x [N, H · D]; weights [N, H], or [1, H]: the same for every row.
void weigh_heads(Engine& engine, View<const float, 2> x, View<const float, 2> weights, View<float, 2> y);

// y [N, H · D] = weights(n, h) · head h of x: what that sums.
void scale_heads(Engine& engine, View<const float, 2> x, View<const float, 2> weights, View<float, 2> y);

// y [N, H · D] = x ∘ σ(gates), gates [N, H], one for each head, or [N, H · D], one for each element. y may be x.
void gate_heads(Engine& engine, View<const float, 2> x, View<const float, 2> gates, std::int64_t heads,
                View<float, 2> y);

// The way back from y_gradient, shaped as y: x_gradient [N, H · D], which may be x or, of gates, y_gradient, and the
// gradient by what weighs or gates, [N, H] or [N, H · D]. That of weights has a row for each of x even where they are
// one row for all, and may be left out.
void weigh_heads_backward(Engine& engine, View<const float, 2> x, View<const float, 2> weights,
                          View<const float, 2> y_gradient, View<float, 2> x_gradient, View<float, 2> weights_gradient);
void gate_heads_backward(Engine& engine, View<const float, 2> x, View<const float, 2> gates, std::int64_t heads,
                         View<const float, 2> y_gradient, View<float, 2> x_gradient, View<float, 2> gates_gradient);

}  // namespace headlight::ops
