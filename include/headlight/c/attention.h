// Part of headlight/headlight.h: attention, tile by tile, never with an Lq × Lk buffer.
#pragma once

#include "headlight/c/operations.h"

#ifdef __cplusplus
extern "C" {
#endif

// Query row i stands at position p = i (top-left) or p = i + Lk − Lq (bottom-right; with query and key lengths, the
// lengths of that sample; in packed sequences, those of that sequence).
typedef int32_t headlight_align;
enum { HEADLIGHT_ALIGN_AS_CAUSAL = 0, HEADLIGHT_ALIGN_TOP_LEFT = 1, HEADLIGHT_ALIGN_BOTTOM_RIGHT = 2 };

// Causal: row i sees the keys j ≤ p.
typedef int32_t headlight_causal;
enum { HEADLIGHT_CAUSAL_NONE = 0, HEADLIGHT_CAUSAL_TOP_LEFT = 1, HEADLIGHT_CAUSAL_BOTTOM_RIGHT = 2 };

// Row i sees the keys p − left ≤ j ≤ p + right; −1 means unbounded.
typedef struct headlight_window {
  int64_t left;
  int64_t right;
} headlight_window;

// What an entry that is not 0 says in a boolean mask. Frameworks disagree, so there is no default.
typedef int32_t headlight_mask_means;
enum { HEADLIGHT_MASK_MEANS_ATTEND = 1, HEADLIGHT_MASK_MEANS_IGNORE = 2 };

// Which softmax weights to write out: those before dropout. Memory grows only with what is asked.
typedef struct headlight_probabilities {
  size_t struct_size;
  const headlight_tensor* per_head;  // [B, Hq, R, Lk], or
  const headlight_tensor* averaged;  // [B, R, Lk], the mean over the heads, or both
  headlight_indices rows;            // the R query rows wanted, in this order; not given: all of them
  // Not 0, for packed sequences: column j is key j of the row's own sequence, 0 behind its end, and Lk above is the
  // length of the longest one. So memory does not grow with the square of all of them.
  int32_t own_keys;
  int32_t reserved;  // 0
} headlight_probabilities;

// Several masks together mean: visible only where all allow. A row that sees nothing gives zeros and a log-sum-exp of
// −inf.
typedef struct headlight_attention_options {
  size_t struct_size;
  headlight_causal causal;
  // Where rows stand for window and chunk. 0: as `causal` says, else top-left.
  headlight_align align;
  const headlight_window* window;  // NULL: none
  // C > 0: row i sees only the keys of chunk ⌊p / C⌋, chunks counted from key 0. 0: no chunks.
  int64_t chunk;
  // [B] each: rows (keys) at or past the length are padding. Padding keys are not seen; padding rows give zeros and a
  // log-sum-exp of −inf.
  headlight_indices query_lengths;
  headlight_indices key_lengths;
  // [n + 1], ascending from 0 to Lq (to Lk): B = 1 and n sequences lie one after another, each seeing only itself.
  // key_offsets not given: as query_offsets.
  headlight_indices query_offsets;
  headlight_indices key_offsets;
  // UINT8, shape broadcast against [B, Hq, Lq, Lk]: each extent equal or 1. Needs mask_means.
  const headlight_tensor* mask;
  // Added to scale · query · keyᵀ; FLOAT32, broadcast likewise. −inf is a weight of 0.
  const headlight_tensor* bias;
  const float* scale;                   // NULL: 1 / sqrt(Dqk)
  const headlight_tensor* log_sum_exp;  // [B, Hq, Lq], written where given: log Σ_j exp(score_ij), natural logarithm
  const headlight_probabilities* probabilities;  // NULL: none are written
  const headlight_dropout* dropout;              // of the probabilities, after softmax; NULL: none
  headlight_mask_means mask_means;
  int32_t reserved;  // 0
} headlight_attention_options;

// out = softmax(scale · query · keyᵀ + bias) · value; query [B, Lq, Hq, Dqk], key [B, Lk, Hkv, Dqk], value [B, Lk, Hkv,
// Dv], out [B, Lq, Hq, Dv] of float32, Hq a multiple of Hkv. Any strides with a last one of 1, so [B, H, L, D] memory
// works as it is. out must not overlap an input. The bits of a row depend on the build, the instruction set and the
// row's own inputs alone. When it fails nothing has been written.
HEADLIGHT_API headlight_status headlight_attention(headlight_engine* engine, const headlight_tensor* query,
                                                   const headlight_tensor* key, const headlight_tensor* value,
                                                   const headlight_tensor* out,
                                                   const headlight_attention_options* options, headlight_error* error);

// The same by the plain route: scores written out in full, one head at a time, so it needs O(Lq · Lk) scratch. The
// baseline for studies.
HEADLIGHT_API headlight_status headlight_attention_unfused(headlight_engine* engine, const headlight_tensor* query,
                                                           const headlight_tensor* key, const headlight_tensor* value,
                                                           const headlight_tensor* out,
                                                           const headlight_attention_options* options,
                                                           headlight_error* error);

// Where the gradients go; those not given are not computed. query [B, Lq, Hq, Dqk], key [B, Lk, Hkv, Dqk], value [B,
// Lk, Hkv, Dv], bias of the shape of the options' bias, summed over the axes on which that is broadcast. With
// accumulate they are added to what is there. query may be the same tensor as out.
typedef struct headlight_attention_gradients {
  size_t struct_size;
  const headlight_tensor* query;
  const headlight_tensor* key;
  const headlight_tensor* value;
  const headlight_tensor* bias;
  int32_t accumulate;
  int32_t reserved;  // 0
} headlight_attention_gradients;

// The gradients of a sum whose gradient by out is out_gradient [B, Lq, Hq, Dv]; out and log_sum_exp [B, Hq, Lq] are
// what headlight_attention gave for the same arguments and options.
HEADLIGHT_API headlight_status headlight_attention_backward(
    headlight_engine* engine, const headlight_tensor* query, const headlight_tensor* key, const headlight_tensor* value,
    const headlight_tensor* out, const headlight_tensor* log_sum_exp, const headlight_tensor* out_gradient,
    const headlight_attention_gradients* gradients, const headlight_attention_options* options, headlight_error* error);

// The same by the plain route, with two Lq x Lk matrices of scratch; with one where the options name the probabilities
// (per_head) that headlight_attention_unfused wrote, for all rows. out and log_sum_exp are not needed.
HEADLIGHT_API headlight_status headlight_attention_unfused_backward(
    headlight_engine* engine, const headlight_tensor* query, const headlight_tensor* key, const headlight_tensor* value,
    const headlight_tensor* out_gradient, const headlight_attention_gradients* gradients,
    const headlight_attention_options* options, headlight_error* error);

typedef struct headlight_attention_shape {
  size_t struct_size;
  int64_t batch;  // 0: 1
  int64_t query_length;
  int64_t key_length;
  int64_t query_heads;      // 0: 1
  int64_t key_value_heads;  // 0: 1
  int64_t head_dim;
  int64_t value_dim;
} headlight_attention_shape;

HEADLIGHT_API headlight_status headlight_attention_workspace_bytes(const headlight_engine* engine,
                                                                   const headlight_attention_shape* shape,
                                                                   size_t* bytes, headlight_error* error);
HEADLIGHT_API headlight_status headlight_attention_reserve(headlight_engine* engine,
                                                           const headlight_attention_shape* shape,
                                                           headlight_error* error);

// The same for headlight_attention_backward.
HEADLIGHT_API headlight_status headlight_attention_backward_workspace_bytes(const headlight_engine* engine,
                                                                            const headlight_attention_shape* shape,
                                                                            size_t* bytes, headlight_error* error);
HEADLIGHT_API headlight_status headlight_attention_backward_reserve(headlight_engine* engine,
                                                                    const headlight_attention_shape* shape,
                                                                    headlight_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
