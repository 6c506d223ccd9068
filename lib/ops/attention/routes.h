// A checked call of attention, on the route that its plan chooses.
#pragma once

#include <string_view>

#include "ops/attention/operands.h"
#include "ops/attention/rows.h"

namespace headlight::ops {

// Writes everything that was asked for. Takes scratch memory for `name`. `kernels`: those of operands of these types.
void attend(Engine& engine, std::string_view name, const AttentionOperands& operands, const AttentionOptions& options,
            const AttentionSizes& sizes, const kernels::AttentionKernels& kernels, const AttentionScale& scale);

// Averaged probabilities that no head adds to.
void clear_average(const View<float, 3>& averaged) noexcept;

}  // namespace headlight::ops
