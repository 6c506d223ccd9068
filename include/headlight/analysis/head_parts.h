// How much each head brings into what the heads are put together to.
#pragma once

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/tensor.h"

namespace headlight::analysis {

// Concat(head_1 … head_H) W_Oᵀ is the sum over heads of head_h W_O^hᵀ, W_O^h the columns of head h. norms [N, H]: the
// Euclidean length of each of these parts, for each row. (Kobayashi et al. 2020 take norms of parts in this way.)
//
// outputs [N, E]: the heads side by side, as HeadAccess gives them. output_weight [E, E]: out_proj.weight. H divides E.
// Throws std::invalid_argument naming the tensor and its shape.
HEADLIGHT_API void head_part_norms(Engine& engine, View<const float, 2> outputs, View<const float, 2> output_weight,
                                   View<float, 2> norms);

}  // namespace headlight::analysis
