// Part of headlight/headlight.h: how parameters follow their gradients.
#pragma once

#include "headlight/c/training.h"

#ifdef __cplusplus
extern "C" {
#endif

// The parameters of one or more layers in training; refused where a layer is given twice. A parameter's name is here
// "0.in_proj_weight": the layer's number, and its name there. The same bits on any number of threads. The layers
// outlive it and stay in training: once one of them has left training or was destroyed, steps are refused, and
// headlight_optimizer_zero_gradients does nothing.
typedef struct headlight_optimizer headlight_optimizer;

// μ and λ of headlight_sgd_create.
typedef struct headlight_sgd_options {
  size_t struct_size;
  const double* momentum;      // NULL: 0
  const double* weight_decay;  // NULL: 0
} headlight_sgd_options;

// g ← gradient + λ θ; b ← μ b + g; θ ← θ − γ b (without momentum: γ g). As torch.optim.SGD.
HEADLIGHT_API headlight_status headlight_sgd_create(headlight_layer* const* layers, size_t count,
                                                    const headlight_sgd_options* options,
                                                    headlight_optimizer** optimizer, headlight_error* error);

// β₁, β₂, ε and λ of headlight_adamw_create.
typedef struct headlight_adamw_options {
  size_t struct_size;
  const double* beta1;         // NULL: 0.9
  const double* beta2;         // NULL: 0.999
  const double* epsilon;       // NULL: 1e-8
  const double* weight_decay;  // NULL: 0.01
} headlight_adamw_options;

// θ ← θ (1 − γ λ); m ← m + (1 − β₁)(g − m); v ← β₂ v + (1 − β₂) g²;
// θ ← θ − γ / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε). As torch.optim.AdamW.
HEADLIGHT_API headlight_status headlight_adamw_create(headlight_layer* const* layers, size_t count,
                                                      const headlight_adamw_options* options,
                                                      headlight_optimizer** optimizer, headlight_error* error);
HEADLIGHT_API void headlight_optimizer_destroy(headlight_optimizer* optimizer);

// Of one step.
typedef struct headlight_step_options {
  size_t struct_size;
  const double* learning_rate;  // γ. NULL: 1e-3
  const double* max_norm;       // gradients are scaled down together to this Euclidean length at most. NULL or 0: never
} headlight_step_options;

// Set struct_size; the rest is written, as much of it as that holds.
typedef struct headlight_step_report {
  size_t struct_size;
  double gradient_norm;  // of all gradients together, before they are scaled
  const char*
      non_finite;  // the first parameter whose gradient holds a NaN or an infinity, and nothing was changed; NULL
} headlight_step_report;

// One step along the gradients, which stay as they are. The report may be NULL.
HEADLIGHT_API headlight_status headlight_optimizer_step(headlight_optimizer* optimizer, headlight_engine* engine,
                                                        const headlight_step_options* options,
                                                        headlight_step_report* report, headlight_error* error);
HEADLIGHT_API void headlight_optimizer_zero_gradients(headlight_optimizer* optimizer);

// What has to be saved, beside the parameters, to go on with the same bits: the steps taken, and a tensor for each
// parameter and moment, "momentum.NAME" or "first_moment.NAME" and "second_moment.NAME". As with a layer's parameters.
HEADLIGHT_API int64_t headlight_optimizer_steps(const headlight_optimizer* optimizer);
HEADLIGHT_API headlight_status headlight_optimizer_set_steps(headlight_optimizer* optimizer, int64_t steps,
                                                             headlight_error* error);
HEADLIGHT_API int64_t headlight_optimizer_state_count(const headlight_optimizer* optimizer);
HEADLIGHT_API headlight_status headlight_optimizer_state(const headlight_optimizer* optimizer, int64_t index,
                                                         const char** name, int32_t* rank, const int64_t** shape,
                                                         headlight_error* error);
HEADLIGHT_API headlight_status headlight_optimizer_get_state(const headlight_optimizer* optimizer, const char* name,
                                                             const headlight_tensor* values, headlight_error* error);
HEADLIGHT_API headlight_status headlight_optimizer_set_state(headlight_optimizer* optimizer, const char* name,
                                                             const headlight_tensor* values, headlight_error* error);

// A learning rate for step 0, 1, …: rises in a line to `peak` over `warmup` steps, then falls along half a cosine to
// `least` at step `total`, and stays.
HEADLIGHT_API double headlight_warmup_cosine(double peak, double least, int64_t warmup, int64_t total, int64_t step);

#ifdef __cplusplus
}  // extern "C"
#endif
