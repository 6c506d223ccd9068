// How much each head brings into what the heads are put together to.
#pragma once

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/tensor.h"

namespace headlight::analysis {

// However a layer puts its heads together (Merge), its output is a sum over heads and the bias, for the last product is
// linear, and weights and gates are the row's own: they depend on x, not on what other heads give. With W_O^h the
// columns of head h and x the row that asks, the part of head h is
//   concatenate        head_h W_O^hᵀ
//   average            (head_h / H) W_upᵀ
//   weighted           (α_h head_h) W_upᵀ, α = softmax(a)
//   weighted_by_input  (α_h head_h) W_upᵀ, α = softmax(x W_aᵀ)
//   gated_by_head      (g_h head_h) W_O^hᵀ, g = σ(x W_gᵀ), [H]
//   gated_by_element   (g_h ∘ head_h) W_O^hᵀ, g = σ(x W_gᵀ), [E], g_h its columns of head h
// norms [N, H]: the Euclidean length of each part, for each row. (Kobayashi et al. 2020 take norms of parts in this
// way.)
//
// scaled_outputs [N, H·D]: what stands in front of W_O^hᵀ or W_upᵀ above, the heads side by side, as HeadAccess or
// LayerHeads gives it. output_weight: that of the last product, W_O [E, H·D] or W_up [E, D]. Throws
// std::invalid_argument naming the tensor and its shape.
HEADLIGHT_API void head_part_norms(Engine& engine, View<const float, 2> scaled_outputs,
                                   View<const float, 2> output_weight, View<float, 2> norms);

}  // namespace headlight::analysis
