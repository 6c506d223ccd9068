// Compiled once per feature that multiplies bfloat16: attention's backward pass over pairs of such numbers.
#include "kernels/attention_backward/kernels.h"
#include "kernels/attention_backward/pairs-inl.h"
#include "kernels/attention_backward/typed_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::AttentionBackwardKernels pair_backward_kernels;
constinit const kernels::AttentionBackwardKernels pair_backward_kernels = {
    .products = {.score_gradients = pair_score_gradients,
                 .float_score_gradients = score_gradients<BackwardPairs>,
                 .key_value_gradients = key_value_gradients<BackwardPairs>,
                 .query_gradient = query_gradient<BackwardPairs>,
                 .take_rows = pad_row_pairs,
                 .take_keys = pad_row_pairs},
    .rows = kTypedBackwardRows,
};

}  // namespace headlight::HEADLIGHT_TARGET
