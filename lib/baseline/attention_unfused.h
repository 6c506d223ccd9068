// Attention written out in full, the baseline of studies, benches and tests: forward, backward, and as a layer's
// attention in training.
#pragma once

#include "headlight/attention_backward.h"
#include "headlight/layers/training_attention.h"

namespace headlight::baseline {

// attention() by the plain route: scores written out with the engine's gemm and softmax, one (sample, head) at a time,
// so it needs O(Lq · Lk) scratch. Every option, shape and refusal as there; the results differ by rounding alone.
void attention_unfused(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                       View<float, 4> out, const AttentionOptions& options = {});

// attention_backward() by the plain route. P is what attention_unfused() wrote to options.probabilities.per_head, where
// the options name that for all rows: then beside it one Lq × Lk matrix for each thread is held, dP, which dS
// overwrites. Else P is worked out again from query and key, into a second one. out and log_sum_exp are not needed.
void attention_unfused_backward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                View<const float, 4> value, View<const float, 4> out_gradient,
                                const AttentionGradients& gradients, const AttentionOptions& options = {});

// Both as the attention of a layer in training, which then keeps the Lq × Lk probabilities of every head:
//   SavedState saved(Checkpoint::keep_linear, 0, unfused_attention());
[[nodiscard]] const TrainingAttention& unfused_attention() noexcept;

}  // namespace headlight::baseline
