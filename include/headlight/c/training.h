// Part of headlight/headlight.h: the gradients of layers and networks, and optimisers.
#pragma once

#include "headlight/c/network.h"

#ifdef __cplusplus
extern "C" {
#endif

// One step of training, of any layer (headlight_encoder_network of a model's encoder too):
//   headlight_layer_set_training(layer, 1, …), headlight_adamw_create(&layer, 1, …), headlight_saved_state_create(…)
//   for each batch: …_training_forward, headlight_cross_entropy (or another loss), …_backward,
//   headlight_optimizer_step, headlight_optimizer_zero_gradients
// What backward passes find out is the same to the bit on any number of threads and whatever is kept.

// Not 0: every parameter gets a gradient, zero at first, that backward passes add to; 0: they go. A layer that is in
// training already stays as it is.
HEADLIGHT_API headlight_status headlight_layer_set_training(headlight_layer* layer, int32_t training,
                                                            headlight_error* error);
HEADLIGHT_API void headlight_layer_zero_gradients(headlight_layer* layer);
// Copies the gradient of a parameter out; the tensor has the parameter's shape and is contiguous.
HEADLIGHT_API headlight_status headlight_layer_get_gradient(const headlight_layer* layer, const char* name,
                                                            const headlight_tensor* values, headlight_error* error);

// What is kept between forward and backward. The gradients are the same to the bit whatever is chosen: what was not
// kept is computed again.
typedef int32_t headlight_checkpoint;
enum {
  HEADLIGHT_CHECKPOINT_KEEP_LINEAR = 0,    // everything that grows with L alone; never the probabilities
  HEADLIGHT_CHECKPOINT_LAYER_INPUT = 1,    // nothing; in an encoder network, the input of every layer
  HEADLIGHT_CHECKPOINT_EVERY_K_LAYERS = 2  // in an encoder network, the input of every k-th layer
};

// The state between forward and backward of one layer and one batch: memory that grows to what the largest batch needs
// and is kept for the next step. Backward may be called once or often; the next forward overwrites it. The memory that
// inputs and options show must stay as it is until then.
typedef struct headlight_saved_state headlight_saved_state;

// How much a saved state keeps.
typedef struct headlight_saved_state_options {
  size_t struct_size;
  int64_t k;                        // of EVERY_K_LAYERS; 0: √layers, rounded
  headlight_checkpoint checkpoint;  // what it keeps
  // HEADLIGHT_FLOAT32 or, for half the memory and products of bfloat16, HEADLIGHT_BFLOAT16: parameters and their
  // gradients stay float32 (headlight/layers/training.h says what is rounded where).
  headlight_type activations;
} headlight_saved_state_options;

// Makes one that holds nothing yet, and frees it.
HEADLIGHT_API headlight_status headlight_saved_state_create(const headlight_saved_state_options* options,
                                                            headlight_saved_state** saved, headlight_error* error);
HEADLIGHT_API void headlight_saved_state_destroy(headlight_saved_state* saved);
// Bytes of memory held.
HEADLIGHT_API size_t headlight_saved_state_bytes(const headlight_saved_state* saved);

// The random numbers of one step: with the same seed and step every call draws the same. `layer` of `layers` keeps
// those of several layers apart; an encoder network counts its own, of which it has layers + 1.
typedef struct headlight_training_step {
  size_t struct_size;
  uint64_t seed;
  uint64_t step;
  uint32_t layer;
  uint32_t layers;  // 0: 1
} headlight_training_step;

// Each forward computes what the function without `training` does, with dropout, and keeps what backward needs; outputs
// lie apart from inputs. Options name no log_sum_exp and no dropout. Each backward takes the inputs of forward, gives
// the gradients of inputs (NULL: not computed) and adds to those of the parameters. A residual is added to x_gradient,
// and may be that tensor or y_gradient; x_gradient may be y_gradient but for headlight_linear_backward.

// headlight_linear_forward without activation and residual, headlight_layer_norm_layer_forward: nothing is kept but x.
HEADLIGHT_API headlight_status headlight_linear_backward(headlight_layer* layer, headlight_engine* engine,
                                                         const headlight_tensor* x, const headlight_tensor* y_gradient,
                                                         const headlight_tensor* x_gradient,
                                                         const headlight_tensor* residual, headlight_error* error);
HEADLIGHT_API headlight_status headlight_layer_norm_layer_backward(
    headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y_gradient,
    const headlight_tensor* x_gradient, const headlight_tensor* residual, headlight_error* error);

// headlight_feed_forward_forward in training, and its way back.
HEADLIGHT_API headlight_status headlight_feed_forward_training_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y,
    headlight_saved_state* saved, const headlight_training_step* step, const headlight_tensor* residual,
    headlight_error* error);
HEADLIGHT_API headlight_status headlight_feed_forward_backward(
    headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_saved_state* saved,
    const headlight_tensor* y_gradient, const headlight_tensor* x_gradient, const headlight_tensor* residual,
    headlight_error* error);

// headlight_multi_head_attention_forward in training, and its way back.
HEADLIGHT_API headlight_status headlight_multi_head_attention_training_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* query, const headlight_tensor* key,
    const headlight_tensor* value, const headlight_tensor* out, headlight_saved_state* saved,
    const headlight_training_step* step, const headlight_attention_options* options, const headlight_tensor* residual,
    headlight_error* error);

// Inputs that are the same tensor share one gradient: give it for the first of them.
typedef struct headlight_multi_head_attention_gradients {
  size_t struct_size;
  const headlight_tensor* query;     // [B, Lq, E]; those not given are not computed
  const headlight_tensor* key;       // [B, Lk, key_width]
  const headlight_tensor* value;     // [B, Lk, value_width]
  const headlight_tensor* residual;  // added to that of the query; may be that tensor or out_gradient
  int32_t accumulate_key_and_value;  // not 0: those of key and value are added to what is there
  int32_t reserved;                  // 0
  const headlight_tensor* bias;      // of the options' bias, of its shape, summed where that is broadcast. Overwritten
} headlight_multi_head_attention_gradients;

// The way back of headlight_multi_head_attention_training_forward.
HEADLIGHT_API headlight_status headlight_multi_head_attention_backward(
    headlight_layer* layer, headlight_engine* engine, const headlight_tensor* query, const headlight_tensor* key,
    const headlight_tensor* value, const headlight_saved_state* saved, const headlight_tensor* out_gradient,
    const headlight_multi_head_attention_gradients* gradients, headlight_error* error);

// headlight_transformer_encoder_layer_forward in training, and its way back.
HEADLIGHT_API headlight_status headlight_transformer_encoder_layer_training_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y,
    headlight_saved_state* saved, const headlight_training_step* step, const headlight_attention_options* options,
    headlight_error* error);
HEADLIGHT_API headlight_status headlight_transformer_encoder_layer_backward(
    headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_saved_state* saved,
    const headlight_tensor* y_gradient, const headlight_tensor* x_gradient, headlight_error* error);

// headlight_transformer_decoder_layer_forward in training, and its way back.
HEADLIGHT_API headlight_status headlight_transformer_decoder_layer_training_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* memory,
    const headlight_tensor* y, headlight_saved_state* saved, const headlight_training_step* step,
    const headlight_attention_options* self_options, const headlight_attention_options* memory_options,
    headlight_error* error);
// The memory's gradient is added to what is there, for many layers look at one memory.
HEADLIGHT_API headlight_status headlight_transformer_decoder_layer_backward(
    headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* memory,
    const headlight_saved_state* saved, const headlight_tensor* y_gradient, const headlight_tensor* x_gradient,
    const headlight_tensor* memory_gradient, headlight_error* error);

// headlight_encoder_network_forward in training, and its way back.
HEADLIGHT_API headlight_status headlight_encoder_network_training_forward(
    const headlight_layer* network, headlight_engine* engine, const headlight_encoder_network_input* input,
    const headlight_tensor* hidden, headlight_saved_state* saved, const headlight_training_step* step,
    headlight_error* error);
HEADLIGHT_API headlight_status headlight_encoder_network_backward(headlight_layer* network, headlight_engine* engine,
                                                                  const headlight_encoder_network_input* input,
                                                                  const headlight_saved_state* saved,
                                                                  const headlight_tensor* hidden_gradient,
                                                                  headlight_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
