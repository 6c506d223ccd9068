// headlight_analysis from C: attention written out in full, the baseline of studies. Link headlight_analysis beside
// headlight.
#pragma once

#include "headlight/headlight.h"

#ifdef __cplusplus
extern "C" {
#endif

// headlight_attention by the plain route: scores written out in full, one head at a time, so it needs O(Lq * Lk)
// scratch. Every option, shape and refusal as there; the results differ by rounding alone.
HEADLIGHT_API headlight_status headlight_attention_unfused(headlight_engine* engine, const headlight_tensor* query,
                                                           const headlight_tensor* key, const headlight_tensor* value,
                                                           const headlight_tensor* out,
                                                           const headlight_attention_options* options,
                                                           headlight_error* error);

// headlight_attention_backward by the plain route, with two Lq x Lk matrices of scratch; with one where the options
// name the probabilities (per_head) that headlight_attention_unfused wrote, for all rows. out and log_sum_exp are not
// needed.
HEADLIGHT_API headlight_status headlight_attention_unfused_backward(
    headlight_engine* engine, const headlight_tensor* query, const headlight_tensor* key, const headlight_tensor* value,
    const headlight_tensor* out_gradient, const headlight_attention_gradients* gradients,
    const headlight_attention_options* options, headlight_error* error);

// headlight_saved_state_create for layers whose attention runs by the plain route, both ways: the Lq x Lk probabilities
// of every head are kept too. Used and destroyed as any other.
HEADLIGHT_API headlight_status headlight_unfused_saved_state_create(const headlight_saved_state_options* options,
                                                                    headlight_saved_state** saved,
                                                                    headlight_error* error);

#ifdef __cplusplus
}
#endif
