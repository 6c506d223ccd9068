// Every function that computes, called with nothing at all: the engine is what it asks for first.
#include "check.h"
#include "headlight/headlight.h"

#define NAMES_THE_ENGINE(call) REFUSED("engine is a null pointer", call)

static void attention(void) {
  NAMES_THE_ENGINE(headlight_attention(NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_attention_backward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_attention_workspace_bytes(NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_attention_reserve(NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_attention_backward_workspace_bytes(NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_attention_backward_reserve(NULL, NULL, &error));
}

static void stream(void) {
  headlight_attention_stream* stream = NULL;
  NAMES_THE_ENGINE(headlight_attention_stream_create(NULL, NULL, 0, 0, NULL, &stream, &error));
}

static void layers(void) {
  NAMES_THE_ENGINE(headlight_linear_forward(NULL, NULL, NULL, NULL, 0, NULL, &error));
  NAMES_THE_ENGINE(headlight_linear_workspace_bytes(NULL, NULL, 0, NULL, &error));
  NAMES_THE_ENGINE(headlight_linear_reserve(NULL, NULL, 0, &error));
  NAMES_THE_ENGINE(headlight_layer_norm_layer_forward(NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_feed_forward_forward(NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_feed_forward_workspace_bytes(NULL, NULL, 0, 0, NULL, &error));
  NAMES_THE_ENGINE(headlight_feed_forward_reserve(NULL, NULL, 0, 0, &error));
  NAMES_THE_ENGINE(
      headlight_multi_head_attention_forward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_multi_head_attention_workspace_bytes(NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_multi_head_attention_reserve(NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_transformer_encoder_layer_forward(NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_transformer_encoder_layer_workspace_bytes(NULL, NULL, 0, 0, NULL, &error));
  NAMES_THE_ENGINE(headlight_transformer_encoder_layer_reserve(NULL, NULL, 0, 0, &error));
  NAMES_THE_ENGINE(headlight_transformer_decoder_layer_forward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_transformer_decoder_layer_workspace_bytes(NULL, NULL, 0, 0, 0, NULL, &error));
  NAMES_THE_ENGINE(headlight_transformer_decoder_layer_reserve(NULL, NULL, 0, 0, 0, &error));
}

static void network(void) {
  NAMES_THE_ENGINE(headlight_encoder_network_forward(NULL, NULL, NULL, NULL, NULL, 0, &error));
  NAMES_THE_ENGINE(headlight_encoder_network_workspace_bytes(NULL, NULL, 0, NULL, &error));
  NAMES_THE_ENGINE(headlight_encoder_network_reserve(NULL, NULL, 0, &error));
}

static void operations(void) {
  headlight_packed_matrix* packed = NULL;
  NAMES_THE_ENGINE(headlight_gemm(NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_packed_matrix_create(NULL, NULL, HEADLIGHT_FLOAT32, &packed, &error));
  NAMES_THE_ENGINE(headlight_gemm_packed(NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_gemm_workspace_bytes(NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_gemm_reserve(NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_bias_backward(NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_activate(NULL, 0, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_activate_backward(NULL, 0, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_softmax(NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_softmax_backward(NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_layer_norm(NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_layer_norm_backward(NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_apply_dropout(NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_embed(NULL, NULL, NULL, 0, NULL, &error));
  NAMES_THE_ENGINE(headlight_embed_backward(NULL, NULL, NULL, NULL, 0, &error));
  NAMES_THE_ENGINE(headlight_mean_pool(NULL, NULL, NULL, NULL, 0, &error));
  NAMES_THE_ENGINE(headlight_mean_pool_backward(NULL, NULL, NULL, NULL, NULL, 0, &error));
  NAMES_THE_ENGINE(headlight_cross_entropy(NULL, NULL, NULL, NULL, NULL, NULL, &error));
}

static void optimizer(void) { NAMES_THE_ENGINE(headlight_optimizer_step(NULL, NULL, NULL, NULL, &error)); }

static void training(void) {
  NAMES_THE_ENGINE(headlight_linear_backward(NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_layer_norm_layer_backward(NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_feed_forward_training_forward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_feed_forward_backward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_multi_head_attention_training_forward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                                                   NULL, &error));
  NAMES_THE_ENGINE(headlight_multi_head_attention_backward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(
      headlight_transformer_encoder_layer_training_forward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_transformer_encoder_layer_backward(NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_transformer_decoder_layer_training_forward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                                                        NULL, &error));
  NAMES_THE_ENGINE(
      headlight_transformer_decoder_layer_backward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_encoder_network_training_forward(NULL, NULL, NULL, NULL, NULL, NULL, &error));
  NAMES_THE_ENGINE(headlight_encoder_network_backward(NULL, NULL, NULL, NULL, NULL, &error));
}

int main(void) {
  attention();
  stream();
  layers();
  network();
  operations();
  optimizer();
  training();
  return check_result();
}
