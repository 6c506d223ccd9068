// Compiled once per feature with tile registers: attention's backward pass over pairs of bfloat16.
#include "kernels/attention_backward/amx_scores-inl.h"
#include "kernels/attention_backward/kernels.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::BackwardProductKernels pair_backward_kernels;
const kernels::BackwardProductKernels pair_backward_kernels = {
    .score_gradients = tile_score_gradients,
    .float_score_gradients = float_tile_score_gradients,
    .key_value_gradients = nullptr,
    .query_gradient = tile_query_gradient,
    .take_rows = nullptr,
    .take_keys = take_turned_keys,
};

}  // namespace headlight::HEADLIGHT_TARGET
