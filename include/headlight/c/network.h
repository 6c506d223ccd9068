// Part of headlight/headlight.h: a whole encoder network, from token ids to hidden states.
#pragma once

#include "headlight/c/layers.h"

#ifdef __cplusplus
extern "C" {
#endif

// hidden = LN(word[ids] + position[positions] + token_type[token_types]), then every layer (HEADLIGHT_NORM_POST, BERT);
// with HEADLIGHT_NORM_PRE the LN comes after the last layer instead. Parameters: word_embeddings.weight [vocabulary,
// E], position_embeddings.weight [max_positions, E], token_type_embeddings.weight [token_types, E], norm.weight and
// norm.bias [E], and layers.N.* of the transformer encoder layer.
typedef struct headlight_encoder_network_options {
  size_t struct_size;
  int64_t vocabulary;          // rows of the word table, needed
  int64_t max_positions;       // needed
  int64_t token_types;         // 0: there is no such table
  int64_t width;               // E, needed
  int64_t heads;               // needed
  int64_t feed_forward_width;  // F; 0: 4 · width
  int64_t layers;
  const float* layer_norm_epsilon;  // NULL: 1e-12
  headlight_norm norm;
  headlight_activation activation;  // default: gelu
  headlight_merge merge;            // of each layer's heads
  int32_t orthogonal;               // not 0: as in headlight_multi_head_attention_options
  const float* dropout;             // in training, in [0, 1). NULL: 0.1
} headlight_encoder_network_options;

// Makes such a network: normalisation weights are 1, all else is 0.
HEADLIGHT_API headlight_status headlight_encoder_network_create(const headlight_encoder_network_options* options,
                                                                headlight_layer** network, headlight_error* error);

// N tokens of n sequences, one after another. There is no padding: a token that must not be seen is left out, and the
// others keep their positions.
typedef struct headlight_encoder_network_input {
  size_t struct_size;
  // [N] each, as rows of the three tables; token_types not given where there is no such table.
  headlight_indices ids;
  headlight_indices positions;
  headlight_indices token_types;
  // [n + 1], ascending from 0 to N: sequence s is tokens offsets[s] … offsets[s+1] − 1.
  headlight_indices offsets;
} headlight_encoder_network_input;

// What one layer shows of itself, and what is done to its heads. In an array of these all have the same struct_size,
// which is the distance from one to the next.
typedef struct headlight_layer_access {
  size_t struct_size;
  int64_t layer;  // counted from 0; each at most once
  // per_head [1, H, R, N], averaged [1, R, N], or the longest sequence for N with own_keys; rows are tokens. Across
  // sequences they are 0. NULL: none.
  const headlight_probabilities* probabilities;
  const headlight_head_access* heads;  // outputs and scaled_outputs [1, N, E]. NULL: none
} headlight_layer_access;

// hidden [N, E]. The rows of a sequence have the same bits whatever stands beside it. `access` to `count` layers, at
// most 64, or NULL.
HEADLIGHT_API headlight_status headlight_encoder_network_forward(
    const headlight_layer* network, headlight_engine* engine, const headlight_encoder_network_input* input,
    const headlight_tensor* hidden, const headlight_layer_access* access, size_t count, headlight_error* error);
HEADLIGHT_API headlight_status headlight_encoder_network_workspace_bytes(const headlight_layer* network,
                                                                         const headlight_engine* engine, int64_t tokens,
                                                                         size_t* bytes, headlight_error* error);
HEADLIGHT_API headlight_status headlight_encoder_network_reserve(const headlight_layer* network,
                                                                 headlight_engine* engine, int64_t tokens,
                                                                 headlight_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
