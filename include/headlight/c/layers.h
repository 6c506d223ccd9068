// Part of headlight/headlight.h: layers with named parameters.
#pragma once

#include "headlight/c/attention.h"
#include "headlight/c/operations.h"

#ifdef __cplusplus
extern "C" {
#endif

// A layer of any kind, with its own copy of its parameters: normalisation weights are 1 at first, all others 0.
// Computing leaves it as it is, so any number of threads may compute with one layer at once, on any engines. Its
// workspace_bytes function tells what a forward pass takes from the engine, and its reserve function takes that now, so
// that not even the first pass allocates; where memory ends on the way without it, the outputs hold a part.
typedef struct headlight_layer headlight_layer;
HEADLIGHT_API void headlight_layer_destroy(headlight_layer* layer);

// Xavier-uniform weights, biases 0, normalisation weights 1. The same on every machine.
HEADLIGHT_API headlight_status headlight_layer_initialize(headlight_layer* layer, uint64_t seed,
                                                          headlight_error* error);

// How many parameters there are, and what number `index` is. Name and shape belong to the layer; each of the three may
// be NULL.
HEADLIGHT_API int64_t headlight_layer_parameter_count(const headlight_layer* layer);
HEADLIGHT_API headlight_status headlight_layer_parameter(const headlight_layer* layer, int64_t index, const char** name,
                                                         int32_t* rank, const int64_t** shape, headlight_error* error);

// Copies a parameter out of the layer, or into it. The tensor has the parameter's shape and is contiguous.
HEADLIGHT_API headlight_status headlight_layer_get_parameter(const headlight_layer* layer, const char* name,
                                                             const headlight_tensor* values, headlight_error* error);
HEADLIGHT_API headlight_status headlight_layer_set_parameter(headlight_layer* layer, const char* name,
                                                             const headlight_tensor* values, headlight_error* error);

// A parameter by its name.
typedef struct headlight_weight {
  const char* name;         // "linear1.weight"
  headlight_tensor values;  // contiguous; float32, or bfloat16 or float16, which are widened
} headlight_weight;

// Which weights headlight_layer_load takes.
typedef struct headlight_load_options {
  size_t struct_size;
  // In front of every name: "encoder." loads "encoder.linear1.weight" into "linear1.weight". NULL: none.
  const char* prefix;
  // Not 0: weights under the prefix that nothing takes are passed over. Those outside the prefix always are.
  int32_t ignore_extra;
  int32_t reserved;  // 0
} headlight_load_options;

// Copies every parameter from the weight of its name, all or none: refused when one is missing, has another shape,
// belongs to no parameter or comes twice.
HEADLIGHT_API headlight_status headlight_layer_load(headlight_layer* layer, const headlight_weight* weights,
                                                    size_t count, const headlight_load_options* options,
                                                    headlight_error* error);

// The type that the layer's products multiply in, HEADLIGHT_FLOAT32 at first. As HEADLIGHT_BFLOAT16, HEADLIGHT_INT8 or
// HEADLIGHT_INT4 weights and what they are multiplied by are rounded, as HEADLIGHT_FLOAT16 weights alone; packed
// weights take a half, a quarter, a seventh or a half of the memory, and sums and all else stay float32. It is for
// inference: a layer in training multiplies in float32. Parameters stay as they were set.
HEADLIGHT_API headlight_status headlight_layer_set_precision(headlight_layer* layer, headlight_type precision,
                                                             headlight_error* error);
HEADLIGHT_API headlight_type headlight_layer_precision(const headlight_layer* layer);

// y = x Wᵀ + b. Parameters as in nn.Linear: weight [out_features, in_features], bias [out_features].
typedef struct headlight_linear_options {
  size_t struct_size;
  int64_t in_features;   // needed
  int64_t out_features;  // needed
  int32_t without_bias;  // not 0: there is none
  int32_t reserved;      // 0
} headlight_linear_options;

// Makes such a layer, its parameters 0.
HEADLIGHT_API headlight_status headlight_linear_create(const headlight_linear_options* options, headlight_layer** layer,
                                                       headlight_error* error);

// x [N, in_features] → y [N, out_features] = activation(x Wᵀ + b) + residual (NULL: none; may be y itself). y must not
// overlap x.
HEADLIGHT_API headlight_status headlight_linear_forward(const headlight_layer* layer, headlight_engine* engine,
                                                        const headlight_tensor* x, const headlight_tensor* y,
                                                        headlight_activation activation,
                                                        const headlight_tensor* residual, headlight_error* error);
HEADLIGHT_API headlight_status headlight_linear_workspace_bytes(const headlight_layer* layer,
                                                                const headlight_engine* engine, int64_t rows,
                                                                size_t* bytes, headlight_error* error);
HEADLIGHT_API headlight_status headlight_linear_reserve(const headlight_layer* layer, headlight_engine* engine,
                                                        int64_t rows, headlight_error* error);

// headlight_layer_norm with parameters of its own. As in nn.LayerNorm: weight [width], bias [width].
typedef struct headlight_layer_norm_layer_options {
  size_t struct_size;
  int64_t width;         // needed
  const float* epsilon;  // NULL: 1e-5
  int32_t without_bias;  // not 0: there is none
  int32_t reserved;      // 0
} headlight_layer_norm_layer_options;

// Makes such a layer, its weights 1 and its bias 0.
HEADLIGHT_API headlight_status headlight_layer_norm_layer_create(const headlight_layer_norm_layer_options* options,
                                                                 headlight_layer** layer, headlight_error* error);

// x [N, width] → y [N, width]; y may be x.
HEADLIGHT_API headlight_status headlight_layer_norm_layer_forward(const headlight_layer* layer,
                                                                  headlight_engine* engine, const headlight_tensor* x,
                                                                  const headlight_tensor* y, headlight_error* error);

// y = activation(x W_1ᵀ + b_1) W_2ᵀ + b_2. Parameters: linear1.weight [F, E], linear1.bias [F], linear2.weight [E, F],
// linear2.bias [E].
typedef struct headlight_feed_forward_options {
  size_t struct_size;
  int64_t width;                    // E, needed
  int64_t hidden_width;             // F; 0: 4 · width
  headlight_activation activation;  // default: gelu
  int32_t without_bias;             // not 0: there is none
  const float* dropout;             // of the activations, in training: in [0, 1). NULL: 0
} headlight_feed_forward_options;

// Makes such a layer, its parameters 0.
HEADLIGHT_API headlight_status headlight_feed_forward_create(const headlight_feed_forward_options* options,
                                                             headlight_layer** layer, headlight_error* error);

// x [B, L, E] → y [B, L, E] (+ residual where given); y may be x, and residual may be either.
HEADLIGHT_API headlight_status headlight_feed_forward_forward(const headlight_layer* layer, headlight_engine* engine,
                                                              const headlight_tensor* x, const headlight_tensor* y,
                                                              const headlight_tensor* residual, headlight_error* error);
HEADLIGHT_API headlight_status headlight_feed_forward_workspace_bytes(const headlight_layer* layer,
                                                                      const headlight_engine* engine, int64_t batch,
                                                                      int64_t length, size_t* bytes,
                                                                      headlight_error* error);
HEADLIGHT_API headlight_status headlight_feed_forward_reserve(const headlight_layer* layer, headlight_engine* engine,
                                                              int64_t batch, int64_t length, headlight_error* error);

// How heads become one representation again; D = E / heads. x is the query before its projection.
typedef int32_t headlight_merge;
enum {
  HEADLIGHT_MERGE_CONCATENATE = 0,        // Concat(head_1 … head_H) W_Oᵀ
  HEADLIGHT_MERGE_AVERAGE = 1,            // (Σ_h head_h / H) W_upᵀ
  HEADLIGHT_MERGE_WEIGHTED = 2,           // (Σ_h α_h head_h) W_upᵀ, α = softmax(a), a learned
  HEADLIGHT_MERGE_WEIGHTED_BY_INPUT = 3,  // the same, a = x W_aᵀ for each token
  HEADLIGHT_MERGE_GATED_BY_HEAD = 4,      // Concat(g_h head_h) W_Oᵀ, g = σ(x W_gᵀ): one gate a head
  HEADLIGHT_MERGE_GATED_BY_ELEMENT = 5    // Concat(g_h ∘ head_h) W_Oᵀ: one gate an element
};
// "concatenate", "weighted-by-input"; "" for what is no such way. And back: −1 for what is no such name.
HEADLIGHT_API const char* headlight_merge_name(headlight_merge merge);
HEADLIGHT_API headlight_merge headlight_merge_from_name(const char* name);

// Multi-head attention: out = Concat(head_1 … head_H) W_Oᵀ + b_O, head_h = attention(query W_Qᵀ + b_Q, key W_Kᵀ + b_K,
// value W_Vᵀ + b_V) over the columns of head h. Parameters as in nn.MultiheadAttention, with Ekv = D · key_value_heads:
// in_proj_weight [E + 2·Ekv, E] (or q_proj_weight [E, E], k_proj_weight [Ekv, key_width], v_proj_weight [Ekv,
// value_width]), in_proj_bias [E + 2·Ekv], out_proj.weight [E, E], out_proj.bias [E]. Other merges have, in place of
// W_O, W_up in out_proj.weight [E, D]; a in merge_logits [H]; W_a in merge_proj.weight [H, E]; W_g in gate_proj.weight
// [H, E] or [E, E].
typedef struct headlight_multi_head_attention_options {
  size_t struct_size;
  int64_t width;  // E of queries and outputs, needed; a head has D = E / heads of it
  int64_t heads;  // needed
  // 0: as many as heads. Else a divisor of heads: each serves heads / key_value_heads query heads.
  int64_t key_value_heads;
  int64_t key_width;    // 0: as wide as the queries
  int64_t value_width;  // 0: as wide as the queries
  int32_t without_bias;
  // Not 0: q_proj_weight, k_proj_weight and v_proj_weight rather than in_proj_weight. Always so where widths differ;
  // headlight_layer_load takes either.
  int32_t separate_projections;
  headlight_merge merge;
  // Not 0: headlight_layer_initialize draws W_Q and W_K with orthonormal rows, so that heads begin in spaces at right
  // angles.
  int32_t orthogonal;
  const float* dropout;  // of the probabilities, in training: in [0, 1). NULL: 0
} headlight_multi_head_attention_options;

// Makes such a layer, its parameters 0.
HEADLIGHT_API headlight_status headlight_multi_head_attention_create(
    const headlight_multi_head_attention_options* options, headlight_layer** layer, headlight_error* error);

// What lies between the heads and W_O, for those who ask.
typedef struct headlight_head_access {
  size_t struct_size;
  // [B, Lq, E], written where given: Concat(head_1 … head_H), head h in columns h·D … (h+1)·D − 1, before any weights
  // or gates.
  const headlight_tensor* outputs;
  headlight_indices silenced;  // heads whose output is replaced by zeros
  // [B, Lq, E], written where given: the same after its weight or gate, as it goes into the last product: head_h where
  // heads are concatenated, head_h / H, α_h head_h or g_h ∘ head_h.
  const headlight_tensor* scaled_outputs;
} headlight_head_access;

// query [B, Lq, E], key [B, Lk, key_width], value [B, Lk, value_width] → out [B, Lq, E] (+ residual [B, Lq, E] where
// given). Self-attention: the same tensor three times. out may be any of the others. Options as in headlight_attention;
// heads may be NULL.
HEADLIGHT_API headlight_status headlight_multi_head_attention_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* query, const headlight_tensor* key,
    const headlight_tensor* value, const headlight_tensor* out, const headlight_attention_options* options,
    const headlight_tensor* residual, const headlight_head_access* heads, headlight_error* error);

// Which of query, key and value are the same tensor, and so share a product.
typedef int32_t headlight_shared_inputs;
enum { HEADLIGHT_SHARED_ALL = 0, HEADLIGHT_SHARED_KEY_AND_VALUE = 1, HEADLIGHT_SHARED_NONE = 2 };

// How much one call gets.
typedef struct headlight_multi_head_attention_shape {
  size_t struct_size;
  int64_t batch;  // 0: 1
  // Lq, Lk, and which inputs are the same tensor.
  int64_t query_length;
  int64_t key_length;
  headlight_shared_inputs inputs;
  int32_t reserved;  // 0
} headlight_multi_head_attention_shape;

// The scratch bytes that a call of that shape takes from the engine; and taking them now.
HEADLIGHT_API headlight_status headlight_multi_head_attention_workspace_bytes(
    const headlight_layer* layer, const headlight_engine* engine, const headlight_multi_head_attention_shape* shape,
    size_t* bytes, headlight_error* error);
HEADLIGHT_API headlight_status headlight_multi_head_attention_reserve(const headlight_layer* layer,
                                                                      headlight_engine* engine,
                                                                      const headlight_multi_head_attention_shape* shape,
                                                                      headlight_error* error);

// Where the normalisation stands around each part F of a transformer layer.
typedef int32_t headlight_norm;
enum {
  HEADLIGHT_NORM_POST = 0,  // x ← LN(x + F(x)): the original transformer, BERT
  HEADLIGHT_NORM_PRE = 1    // x ← x + F(LN(x)): GPT-2
};

// What a transformer layer is made of.
typedef struct headlight_transformer_layer_options {
  size_t struct_size;
  int64_t width;                    // E, needed
  int64_t heads;                    // needed
  int64_t feed_forward_width;       // F; 0: 4 · width
  const float* layer_norm_epsilon;  // NULL: 1e-5
  headlight_norm norm;              // default: HEADLIGHT_NORM_POST
  headlight_activation activation;  // of the feed-forward part; default: gelu
  int32_t without_bias;             // of products and normalisations
  headlight_merge merge;            // of each attention
  // Of the probabilities, of each part's output and of the feed-forward activations, in training: in [0, 1). NULL: 0.1.
  const float* dropout;
  int32_t orthogonal;  // not 0: as in headlight_multi_head_attention_options
  int32_t reserved;    // 0
} headlight_transformer_layer_options;

// Self-attention, then feed-forward. Parameters as in nn.TransformerEncoderLayer: self_attn.*, linear1.*, linear2.*,
// norm1.*, norm2.*.
HEADLIGHT_API headlight_status headlight_transformer_encoder_layer_create(
    const headlight_transformer_layer_options* options, headlight_layer** layer, headlight_error* error);

// x [B, L, E] → y [B, L, E]; y may be x. The options and heads are those of the self-attention.
HEADLIGHT_API headlight_status headlight_transformer_encoder_layer_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y,
    const headlight_attention_options* options, const headlight_head_access* heads, headlight_error* error);
HEADLIGHT_API headlight_status headlight_transformer_encoder_layer_workspace_bytes(const headlight_layer* layer,
                                                                                   const headlight_engine* engine,
                                                                                   int64_t batch, int64_t length,
                                                                                   size_t* bytes,
                                                                                   headlight_error* error);
HEADLIGHT_API headlight_status headlight_transformer_encoder_layer_reserve(const headlight_layer* layer,
                                                                           headlight_engine* engine, int64_t batch,
                                                                           int64_t length, headlight_error* error);

// Self-attention, attention to a memory, then feed-forward. Parameters as in nn.TransformerDecoderLayer: self_attn.*,
// multihead_attn.*, linear1.*, linear2.*, norm1.*, norm2.*, norm3.*.
HEADLIGHT_API headlight_status headlight_transformer_decoder_layer_create(
    const headlight_transformer_layer_options* options, headlight_layer** layer, headlight_error* error);

// x [B, L, E], memory [B, Lm, E] → y [B, L, E]; y may be x. self_options NULL: causal, top-left; options that are given
// are taken as they are.
HEADLIGHT_API headlight_status headlight_transformer_decoder_layer_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* memory,
    const headlight_tensor* y, const headlight_attention_options* self_options,
    const headlight_attention_options* memory_options, headlight_error* error);
HEADLIGHT_API headlight_status headlight_transformer_decoder_layer_workspace_bytes(const headlight_layer* layer,
                                                                                   const headlight_engine* engine,
                                                                                   int64_t batch, int64_t length,
                                                                                   int64_t memory_length, size_t* bytes,
                                                                                   headlight_error* error);
HEADLIGHT_API headlight_status headlight_transformer_decoder_layer_reserve(const headlight_layer* layer,
                                                                           headlight_engine* engine, int64_t batch,
                                                                           int64_t length, int64_t memory_length,
                                                                           headlight_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
