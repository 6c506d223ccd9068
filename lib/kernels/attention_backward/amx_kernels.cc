// Compiled once per feature with tile registers: attention's backward pass over pairs of bfloat16.
#include "kernels/attention_backward/amx_scores-inl.h"
#include "kernels/attention_backward/kernels.h"
#include "kernels/attention_backward/typed_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::AttentionBackwardKernels pair_backward_kernels;
constinit const kernels::AttentionBackwardKernels pair_backward_kernels = {
    .products = {.score_gradients = tile_score_gradients,
                 .float_score_gradients = float_tile_score_gradients,
                 .key_value_gradients = nullptr,
                 .query_gradient = tile_query_gradient,
                 .take_rows = nullptr,
                 .take_keys = take_turned_keys},
    .rows = kTypedBackwardRows,
};

}  // namespace headlight::HEADLIGHT_TARGET
