// Which kernels a call of attention_backward() runs where the program learns the types of its operands as it runs.
#pragma once

#include "headlight/engine.h"
#include "kernels/kernels.h"
#include "ops/attention_backward/operands.h"

namespace headlight::ops {

struct BackwardKernels {
  kernels::AttentionKernels attention;
  kernels::AttentionBackwardKernels backward;

  [[nodiscard]] bool multiplies_pairs() const noexcept { return attention.numbers_of_word == 2; }
};

// Those of float32 where nothing is of another type, and those that multiply pairs of bfloat16 where the call is of
// such and the engine has them. Of the views, types and the last extents count.
[[nodiscard]] BackwardKernels backward_kernels_of_types(const Engine& engine, const AttentionBackwardOperands& operands,
                                                        const TypedAttentionGradients& gradients) noexcept;

}  // namespace headlight::ops
