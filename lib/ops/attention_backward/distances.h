// The gradient of a bias that tells distances alone, for layers.
#pragma once

#include <string_view>

#include "headlight/attention_backward.h"
#include "ops/attention_backward/operands.h"

namespace headlight::ops {

// Of a call of attention_backward() with these operands, which is not checked again: dS summed over samples and all
// pairs of a distance, to distances(h, j − i + Lq − 1) [Hq, Lq + Lk − 1]. It works out the scores once more.
// `operation` is who asks for the scratch memory.
void differentiate_distances(Engine& engine, std::string_view operation, const AttentionBackwardOperands& operands,
                             const AttentionOptions& options, View<float, 2> distances);

}  // namespace headlight::ops
