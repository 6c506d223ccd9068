// Part of headlight/headlight.h: matrix products and what is done to rows.
#pragma once

#include "headlight/c/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

// What is done to each number of a product, or of a tensor.
typedef int32_t headlight_activation;
enum {
  HEADLIGHT_ACTIVATION_DEFAULT = 0,  // none in a product, gelu in a transformer layer
  HEADLIGHT_ACTIVATION_NONE = 1,
  HEADLIGHT_ACTIVATION_RELU = 2,       // max(x, 0)
  HEADLIGHT_ACTIVATION_GELU = 3,       // x · Φ(x), Φ the normal distribution function
  HEADLIGHT_ACTIVATION_GELU_TANH = 4,  // x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))
  HEADLIGHT_ACTIVATION_SILU = 5,       // x / (1 + e⁻ˣ)
};

// What a product may do beside multiplying.
typedef struct headlight_gemm_options {
  size_t struct_size;
  const float* alpha;                // NULL: 1
  const float* beta;                 // NULL: 0; with 0, c is written and never read
  const headlight_tensor* bias;      // [N], added to every row
  const headlight_tensor* residual;  // shaped as c, added after the activation; may be c itself
  headlight_activation activation;   // of the sum, before the residual is added
  int32_t reserved;                  // 0
} headlight_gemm_options;

// c = activation(α · a · b + β · c + bias) + residual, a [M, K], b [K, N], c [M, N] of float32; or a batch of products,
// [batch, M, K], [batch, K, N], [batch, M, N], where a batch stride of 0 repeats an input. Of the last two strides of a
// and of b either must be 1: a matrix stored transposed is a view with its strides exchanged (messages then speak of it
// as stored). c must not overlap an input. The bits depend on K and the instruction set alone.
HEADLIGHT_API headlight_status headlight_gemm(headlight_engine* engine, const headlight_tensor* a,
                                              const headlight_tensor* b, const headlight_tensor* c,
                                              const headlight_gemm_options* options, headlight_error* error);

// b [K, N] of float32 (strides as above) laid out once in the panels of the engine's instruction set, for use with any
// number of products. Never changes; may be used with every engine of that instruction set. As HEADLIGHT_BFLOAT16 it is
// rounded and takes half the memory, and products round a, too, and sum in float32; as HEADLIGHT_FLOAT16 it is rounded
// and takes half the memory, and a stays as it is; as HEADLIGHT_INT8 it is quantized and takes a quarter, and as
// HEADLIGHT_INT4 4.5 bits a number, and products quantize a, too, and sum exactly: PackedMatrix in headlight/gemm.h
// gives formulas and errors. Else the type is HEADLIGHT_FLOAT32.
typedef struct headlight_packed_matrix headlight_packed_matrix;
HEADLIGHT_API headlight_status headlight_packed_matrix_create(headlight_engine* engine, const headlight_tensor* b,
                                                              headlight_type type, headlight_packed_matrix** packed,
                                                              headlight_error* error);
HEADLIGHT_API void headlight_packed_matrix_destroy(headlight_packed_matrix* packed);
HEADLIGHT_API int64_t headlight_packed_matrix_rows(const headlight_packed_matrix* packed);
HEADLIGHT_API int64_t headlight_packed_matrix_columns(const headlight_packed_matrix* packed);
HEADLIGHT_API size_t headlight_packed_matrix_bytes(const headlight_packed_matrix* packed);
HEADLIGHT_API headlight_isa headlight_packed_matrix_isa(const headlight_packed_matrix* packed);
HEADLIGHT_API headlight_type headlight_packed_matrix_type(const headlight_packed_matrix* packed);

// The same product, a and c of rank 2.
HEADLIGHT_API headlight_status headlight_gemm_packed(headlight_engine* engine, const headlight_tensor* a,
                                                     const headlight_packed_matrix* b, const headlight_tensor* c,
                                                     const headlight_gemm_options* options, headlight_error* error);

// How large one product is.
typedef struct headlight_gemm_shape {
  size_t struct_size;
  int64_t batch;        // 0: 1
  int64_t m, n, k;      // [m, k] · [k, n] → [m, n]
  int32_t packed;       // not 0: b is a headlight_packed_matrix
  headlight_type type;  // of b: float32 unless it is packed
} headlight_gemm_shape;

// Every pair of this kind: the scratch bytes that a call of that shape takes from the engine, whatever its options; and
// taking them now, so that not even the first call allocates.
HEADLIGHT_API headlight_status headlight_gemm_workspace_bytes(const headlight_engine* engine,
                                                              const headlight_gemm_shape* shape, size_t* bytes,
                                                              headlight_error* error);
HEADLIGHT_API headlight_status headlight_gemm_reserve(headlight_engine* engine, const headlight_gemm_shape* shape,
                                                      headlight_error* error);

// The gradients of a product are products again: of a, that of c times bᵀ; of b, aᵀ times that of c; added with beta =
// 1. That of the bias is a sum over rows: bias_gradient[j] += Σ_i c_gradient[i, j]; c_gradient [M, N], bias_gradient
// [N].
HEADLIGHT_API headlight_status headlight_bias_backward(headlight_engine* engine, const headlight_tensor* c_gradient,
                                                       const headlight_tensor* bias_gradient, headlight_error* error);

// Of the operations on rows below, up to headlight_embed_backward, and of headlight_bias_backward the tensors with rows
// [N, E] and tables may each be of float32, HEADLIGHT_BFLOAT16 or HEADLIGHT_FLOAT16: numbers are widened, computed with
// in float32 and rounded once (headlight/normalization.h). Vectors, sums over rows and gradients of tables are float32.

// y [N, E] = activation(x [N, E]); y may be x.
HEADLIGHT_API headlight_status headlight_activate(headlight_engine* engine, headlight_activation activation,
                                                  const headlight_tensor* x, const headlight_tensor* y,
                                                  headlight_error* error);

// A backward pass stands below the forward pass that it inverts: given the gradient of some sum by the outputs, it
// gives that by the inputs. x_gradient = y_gradient ∘ activation′(x); all [N, E], x_gradient may be x or y_gradient.
HEADLIGHT_API headlight_status headlight_activate_backward(headlight_engine* engine, headlight_activation activation,
                                                           const headlight_tensor* x,
                                                           const headlight_tensor* y_gradient,
                                                           const headlight_tensor* x_gradient, headlight_error* error);

// y_ij = exp(x_ij − m_i) / Σ_j exp(x_ij − m_i), m_i = max_j x_ij; x, y [N, L], y may be x. A row of −inf gives zeros.
HEADLIGHT_API headlight_status headlight_softmax(headlight_engine* engine, const headlight_tensor* x,
                                                 const headlight_tensor* y, headlight_error* error);

// x_gradient = y ∘ (y_gradient − Σ_j y_ij · y_gradient_ij), y = softmax(x); all [N, L], x_gradient may be y or
// y_gradient.
HEADLIGHT_API headlight_status headlight_softmax_backward(headlight_engine* engine, const headlight_tensor* y,
                                                          const headlight_tensor* y_gradient,
                                                          const headlight_tensor* x_gradient, headlight_error* error);

// What headlight_layer_norm may be told.
typedef struct headlight_layer_norm_options {
  size_t struct_size;
  const headlight_tensor* weight;    // [E]; not given: 1
  const headlight_tensor* bias;      // [E]; not given: 0
  const headlight_tensor* residual;  // [N, E]
  const float* epsilon;              // NULL: 1e-5
} headlight_layer_norm_options;

// y = (z − mean(z)) / sqrt(var(z) + epsilon) · weight + bias over the last axis, z = x + residual, var the biased one;
// x, y [N, E]; y may be x or residual.
HEADLIGHT_API headlight_status headlight_layer_norm(headlight_engine* engine, const headlight_tensor* x,
                                                    const headlight_tensor* y,
                                                    const headlight_layer_norm_options* options,
                                                    headlight_error* error);

// Where the gradients of headlight_layer_norm go; those not given are not computed.
typedef struct headlight_layer_norm_gradients {
  size_t struct_size;
  const headlight_tensor* x;         // [N, E], written; may be x or y_gradient
  const headlight_tensor* residual;  // [N, E], added to the gradient of x; may be that tensor itself
  const headlight_tensor* weight;    // [E], added to
  const headlight_tensor* bias;      // [E], added to
} headlight_layer_norm_gradients;

// The options are those of the forward pass, without a residual: where there was one, x is the sum, and the gradient is
// that of both.
HEADLIGHT_API headlight_status headlight_layer_norm_backward(headlight_engine* engine, const headlight_tensor* x,
                                                             const headlight_tensor* y_gradient,
                                                             const headlight_layer_norm_gradients* gradients,
                                                             const headlight_layer_norm_options* options,
                                                             headlight_error* error);

// Which numbers go is a function of seed, stream and place alone: no mask is stored. Those kept are multiplied by
// 1 / (1 − probability).
typedef struct headlight_dropout {
  float probability;  // in [0, 1)
  uint32_t stream;    // layer and step, say: another stream drops others
  uint64_t seed;
} headlight_dropout;

// y_ij = (x_ij / (1 − probability) where kept, else 0) + residual_ij where given; all [N, E], y may be x or residual.
// The backward pass is the same call: x's gradient from y's, without a residual.
HEADLIGHT_API headlight_status headlight_apply_dropout(headlight_engine* engine, const headlight_tensor* x,
                                                       const headlight_tensor* y, const headlight_dropout* dropout,
                                                       const headlight_tensor* residual, headlight_error* error);

// out[n, :] = Σ_t tables[t][ids[t][n], :]; out [N, E], table t [V_t, E], N ids each; 1 to 8 tables.
HEADLIGHT_API headlight_status headlight_embed(headlight_engine* engine, const headlight_tensor* tables,
                                               const headlight_indices* ids, size_t count, const headlight_tensor* out,
                                               headlight_error* error);

// table_gradients[t][ids[t][n], :] += out_gradient[n, :]; shapes as above, no table overlapping another.
HEADLIGHT_API headlight_status headlight_embed_backward(headlight_engine* engine, const headlight_tensor* out_gradient,
                                                        const headlight_tensor* table_gradients,
                                                        const headlight_indices* ids, size_t count,
                                                        headlight_error* error);

// out[s, :] = mean of rows offsets[s] … offsets[s+1] − 1 of x; x [N, E], out [n, E], offsets [n + 1] ascending from 0
// to N. An empty sequence gives zeros. l2_normalize ≠ 0: each row of out is divided by max(its Euclidean length,
// 1e-12).
HEADLIGHT_API headlight_status headlight_mean_pool(headlight_engine* engine, const headlight_tensor* x,
                                                   const headlight_indices* offsets, const headlight_tensor* out,
                                                   int32_t l2_normalize, headlight_error* error);

// x_gradient [N, E] from out_gradient [n, E]. x is read only with l2_normalize, and else may be NULL.
HEADLIGHT_API headlight_status headlight_mean_pool_backward(headlight_engine* engine, const headlight_tensor* x,
                                                            const headlight_indices* offsets,
                                                            const headlight_tensor* out_gradient,
                                                            const headlight_tensor* x_gradient, int32_t l2_normalize,
                                                            headlight_error* error);

// What does not count, and where the gradient goes.
typedef struct headlight_cross_entropy_options {
  size_t struct_size;
  const int64_t* ignore_label;              // rows with this label count for nothing. NULL: −100
  const headlight_tensor* logits_gradient;  // [N, V], written where given; may be logits itself
} headlight_cross_entropy_options;

// *loss = 1/R Σ_i (log Σ_j exp(logits_ij) − logits_i,labels[i]) over the R rows that count (*rows, which may be NULL),
// 0 where there are none; logits [N, V], N labels in [0, V). Its gradient is (softmax(logits)_ij − [j = labels_i]) / R.
HEADLIGHT_API headlight_status headlight_cross_entropy(headlight_engine* engine, const headlight_tensor* logits,
                                                       const headlight_indices* labels, double* loss, int64_t* rows,
                                                       const headlight_cross_entropy_options* options,
                                                       headlight_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
