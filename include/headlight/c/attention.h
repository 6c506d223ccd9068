// Part of headlight/headlight.h: attention, block by block, never with an Lq × Lk buffer.
#pragma once

#include "headlight/c/operations.h"

#ifdef __cplusplus
extern "C" {
#endif

// Row i of a sequence stands at position p = query_start + i, its key j at key_start + j. An alignment names where row
// 0 stands: where key 0 does (top-left), or so that the last row stands where the last key does (bottom-right; with
// query and key lengths, the lengths of that sample; in packed sequences, those of that sequence).
typedef int32_t headlight_align;
enum { HEADLIGHT_ALIGN_AS_CAUSAL = 0, HEADLIGHT_ALIGN_TOP_LEFT = 1, HEADLIGHT_ALIGN_BOTTOM_RIGHT = 2 };

// Causal: a row sees the keys that stand no further on than itself.
typedef int32_t headlight_causal;
enum { HEADLIGHT_CAUSAL_NONE = 0, HEADLIGHT_CAUSAL_TOP_LEFT = 1, HEADLIGHT_CAUSAL_BOTTOM_RIGHT = 2 };

// A row at position p sees the keys at p − left to p + right; −1 means unbounded.
typedef struct headlight_window {
  // How many keys before p, and how many behind it.
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

// How far on its way a score is: with bias and slopes, and −inf where the row does not see the key; raw, scale · query
// · key; capped, behind the soft cap. The last two are those of hidden pairs, too.
typedef int32_t headlight_score_stage;
enum { HEADLIGHT_SCORES_MASKED = 0, HEADLIGHT_SCORES_RAW = 1, HEADLIGHT_SCORES_CAPPED = 2 };

// What a score goes through, each where it is asked for:
//   scale · query · key → soft cap → + bias − slope · distance → −inf where a mask hides it.
// Several masks together mean: visible only where all allow. A row that sees nothing gives zeros and a log-sum-exp of
// −inf, or of its sink.
typedef struct headlight_attention_options {
  size_t struct_size;
  headlight_causal causal;  // which keys a row sees, by position
  // Where rows stand for window, chunk and slopes. 0: as `causal` says, else top-left.
  headlight_align align;
  const headlight_window* window;  // NULL: none
  // C > 0: a row at position p sees only the keys of chunk ⌊p / C⌋, chunks counted from position 0. 0: no chunks.
  int64_t chunk;
  // [B] each: rows (keys) at or past the length are padding. Padding keys are not seen; padding rows give zeros and a
  // log-sum-exp of −inf.
  headlight_indices query_lengths;
  headlight_indices key_lengths;
  // [n + 1], ascending from 0 to Lq (to Lk): B = 1 and n sequences lie one after another, each seeing only itself.
  // key_offsets not given: as query_offsets.
  headlight_indices query_offsets;
  headlight_indices key_offsets;
  // One number for all sequences, or one for each sample (each packed sequence), from 0 to 2⁶⁰. key_start not given: 0.
  // query_start not given: what `causal` and `align` name; given, it stands for all of them.
  headlight_indices query_start;
  headlight_indices key_start;
  // UINT8, shape broadcast against [B, Hq, Lq, Lk]: each extent equal or 1. Needs mask_means.
  const headlight_tensor* mask;
  // Added to scale · query · keyᵀ; FLOAT32, broadcast likewise. −inf is a weight of 0.
  const headlight_tensor* bias;
  const float* scale;                   // NULL: 1 / sqrt(Dqk)
  const headlight_tensor* log_sum_exp;  // [B, Hq, Lq], written where given: log Σ_j exp(score_ij), natural logarithm
  const headlight_probabilities* probabilities;  // NULL: none are written
  const headlight_dropout* dropout;              // of the probabilities, after softmax; NULL: none
  const float* softcap;                          // c > 0: scores become c · tanh(score / c); NULL or 0: none
  // FLOAT32 [Hq] each. slope_h · |p − position of the key| is taken from the scores of head h; a sink is one more logit
  // for each row of head h, which takes its share of the sum and adds no value, and which the log-sum-exp counts.
  const headlight_tensor* alibi;
  const headlight_tensor* sinks;
  const headlight_tensor* scores;  // [B, Hq, Lq, Lk], written where given: the scores as they are at scores_at
  headlight_mask_means mask_means;
  headlight_score_stage scores_at;
  // FLOAT32 [B, Lk, Hkv] with any strides, where headlight_attention() is given a key or value of INT8.
  const headlight_tensor* key_scales;
  const headlight_tensor* value_scales;
  // FLOAT32 [B, Hq, Lq], for headlight_attention_backward() alone: the gradient by log_sum_exp of a sum that depends on
  // it too.
  const headlight_tensor* log_sum_exp_gradient;
} headlight_attention_options;

// out = softmax(scale · query · keyᵀ + bias) · value; query [B, Lq, Hq, Dqk], key [B, Lk, Hkv, Dqk], value [B, Lk, Hkv,
// Dv], out [B, Lq, Hq, Dv], each FLOAT32, BFLOAT16 or FLOAT16, Hq a multiple of Hkv; key and value may be INT8, with
// options.key_scales and value_scales, and stand for scale · number of their row. Numbers of 16 bits are widened,
// all arithmetic is float32's, and out is rounded once, to nearest even; but where query, key and value are BFLOAT16,
// Dqk is even and the engine has the feature AVX512-BF16, pairs of such numbers are multiplied as attention.h
// says, which errs by a rounding of each weight more. Any strides with a last one of 1, so [B, H, L,
// D] memory works as it is. out must not overlap an input. The bits of a row depend on the build, the instruction set
// with its features, and the row's own inputs alone. When it fails nothing has been written.
HEADLIGHT_API headlight_status headlight_attention(headlight_engine* engine, const headlight_tensor* query,
                                                   const headlight_tensor* key, const headlight_tensor* value,
                                                   const headlight_tensor* out,
                                                   const headlight_attention_options* options, headlight_error* error);

// Rows of x [B, L, H, D], FLOAT32, BFLOAT16 or FLOAT16, as numbers INT8 of that shape and a scale for each row and
// head, scales FLOAT32 [B, L, H] with any strides: scale = max |x| / 127 of the row, at least 2⁻¹²⁶, and number = x ·
// (1 / scale) to nearest even. A row that holds an infinity or a NaN has the scale NaN.
HEADLIGHT_API headlight_status headlight_quantize_rows(headlight_engine* engine, const headlight_tensor* x,
                                                       const headlight_tensor* numbers, const headlight_tensor* scales,
                                                       headlight_error* error);

// Attention over the keys of all parts, which share none: outs and log_sum_exps are lists of `count` tensors, [B, Lq,
// Hq, Dv] and [B, Hq, Lq], that headlight_attention gave for keys of its own each. log_sum_exp = log of the sum of
// exp(log_sum_exps[p]), out = the sum of exp(log_sum_exps[p] - log_sum_exp) * outs[p], both in the order of the list.
// out and log_sum_exp, which may be NULL, may be those of a part. outs and out are FLOAT32, BFLOAT16 or FLOAT16 each:
// numbers of 16 bits are widened, all arithmetic is float32's, and out is rounded once, to nearest even.
HEADLIGHT_API headlight_status headlight_merge_attention(headlight_engine* engine, const headlight_tensor* const* outs,
                                                         const headlight_tensor* const* log_sum_exps, size_t count,
                                                         const headlight_tensor* out,
                                                         const headlight_tensor* log_sum_exp, headlight_error* error);

// Where the gradients go; those not given are not computed. query [B, Lq, Hq, Dqk], key [B, Lk, Hkv, Dqk], value [B,
// Lk, Hkv, Dv], bias of the shape of the options' bias, summed over the axes on which that is broadcast, sinks [Hq].
// With accumulate they are added to what is there. query may be the same tensor as out. query, key and value are
// FLOAT32, BFLOAT16 or FLOAT16 each, bias and sinks FLOAT32.
typedef struct headlight_attention_gradients {
  size_t struct_size;
  const headlight_tensor* query;
  const headlight_tensor* key;
  const headlight_tensor* value;
  const headlight_tensor* bias;
  const headlight_tensor* sinks;
  int32_t accumulate;
  int32_t reserved;  // 0
} headlight_attention_gradients;

// The gradients of a sum whose gradient by out is out_gradient [B, Lq, Hq, Dv], and by log_sum_exp
// options.log_sum_exp_gradient, zeros where that is NULL; out and log_sum_exp [B, Hq, Lq] are what headlight_attention
// gave for the same arguments and options. query, key, value, out and out_gradient are
// FLOAT32, BFLOAT16 or FLOAT16 each: numbers of 16 bits are widened, all arithmetic and all sums are float32's, and
// gradients of 16 bits are rounded once, to nearest even. But where query, key, value and out_gradient are BFLOAT16,
// Dqk and Dv are even and the engine has the feature AVX512-BF16, pairs of such numbers are multiplied as
// headlight/attention_backward.h says, which errs by a rounding of each weight and score gradient more. Formulas are
// there, too.
HEADLIGHT_API headlight_status headlight_attention_backward(
    headlight_engine* engine, const headlight_tensor* query, const headlight_tensor* key, const headlight_tensor* value,
    const headlight_tensor* out, const headlight_tensor* log_sum_exp, const headlight_tensor* out_gradient,
    const headlight_attention_gradients* gradients, const headlight_attention_options* options, headlight_error* error);

// How large a call is.
typedef struct headlight_attention_shape {
  size_t struct_size;
  int64_t batch;            // B; 0: 1
  int64_t query_length;     // Lq
  int64_t key_length;       // Lk
  int64_t query_heads;      // Hq; 0: 1
  int64_t key_value_heads;  // Hkv; 0: 1
  int64_t head_dim;         // Dqk
  int64_t value_dim;        // Dv
  // The type of the gradient of the queries, whose sums are scratch memory where it is of 16 bits. attention itself has
  // none.
  headlight_type query_gradient;  // 0: FLOAT32
  int32_t reserved;               // 0
} headlight_attention_shape;

// The scratch bytes that headlight_attention of that shape takes from the engine; and taking them now.
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
