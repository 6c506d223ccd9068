// Training of multi-head attention and of the transformer's layers; network.cc has that of the encoder network.
#include <string>

#include "c/attention_options.h"
#include "c/layer_names.h"
#include "c/training.h"
#include "headlight/layers/transformer.h"

namespace headlight::c {
namespace {

MultiHeadAttentionGradients layer_gradients(const headlight_multi_head_attention_gradients* given) {
  const Fields fields(kMultiHeadAttention, "gradients", &required(kMultiHeadAttention, "gradients", given));
  if (fields->reserved != 0) {
    refuse(kMultiHeadAttention, "gradients.reserved is ", fields->reserved, ", expected 0");
  }
  return {.query = optional_view<float, 3>(kMultiHeadAttention, "gradients.query", fields->query),
          .key = optional_view<float, 3>(kMultiHeadAttention, "gradients.key", fields->key),
          .value = optional_view<float, 3>(kMultiHeadAttention, "gradients.value", fields->value),
          .residual = optional_view<const float, 3>(kMultiHeadAttention, "gradients.residual", fields->residual),
          .accumulate_key_and_value = fields->accumulate_key_and_value != 0,
          .visit = {},
          .bias = optional_view<float, 4>(kMultiHeadAttention, "gradients.bias", fields->bias)};
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_multi_head_attention_training_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* query, const headlight_tensor* key,
    const headlight_tensor* value, const headlight_tensor* out, headlight_saved_state* saved,
    const headlight_training_step* step, const headlight_attention_options* options, const headlight_tensor* residual,
    headlight_error* error) {
  return call(kMultiHeadAttention, engine, error, [&](Engine& on) {
    as<MultiHeadAttention>(kMultiHeadAttention, layer)
        .forward(on, view<const float, 3>(kMultiHeadAttention, "query", query),
                 view<const float, 3>(kMultiHeadAttention, "key", key),
                 view<const float, 3>(kMultiHeadAttention, "value", value),
                 view<float, 3>(kMultiHeadAttention, "out", out), saved_of(kMultiHeadAttention, saved),
                 training_step(kMultiHeadAttention, step), attention_options(kMultiHeadAttention, options),
                 optional_view<const float, 3>(kMultiHeadAttention, "residual", residual));
  });
}

headlight_status headlight_multi_head_attention_backward(
    headlight_layer* layer, headlight_engine* engine, const headlight_tensor* query, const headlight_tensor* key,
    const headlight_tensor* value, const headlight_saved_state* saved, const headlight_tensor* out_gradient,
    const headlight_multi_head_attention_gradients* gradients, headlight_error* error) {
  return call(kMultiHeadAttention, engine, error, [&](Engine& on) {
    to_change<MultiHeadAttention>(kMultiHeadAttention, layer)
        .backward(on, view<const float, 3>(kMultiHeadAttention, "query", query),
                  view<const float, 3>(kMultiHeadAttention, "key", key),
                  view<const float, 3>(kMultiHeadAttention, "value", value), saved_of(kMultiHeadAttention, saved),
                  view<const float, 3>(kMultiHeadAttention, "out_gradient", out_gradient), layer_gradients(gradients));
  });
}

headlight_status headlight_transformer_encoder_layer_training_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y,
    headlight_saved_state* saved, const headlight_training_step* step, const headlight_attention_options* options,
    headlight_error* error) {
  return call(kEncoderLayer, engine, error, [&](Engine& on) {
    as<TransformerEncoderLayer>(kEncoderLayer, layer)
        .forward(on, view<const float, 3>(kEncoderLayer, "x", x), view<float, 3>(kEncoderLayer, "y", y),
                 saved_of(kEncoderLayer, saved), training_step(kEncoderLayer, step),
                 attention_options(kEncoderLayer, options));
  });
}

headlight_status headlight_transformer_encoder_layer_backward(
    headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_saved_state* saved,
    const headlight_tensor* y_gradient, const headlight_tensor* x_gradient, headlight_error* error) {
  return call(kEncoderLayer, engine, error, [&](Engine& on) {
    to_change<TransformerEncoderLayer>(kEncoderLayer, layer)
        .backward(on, view<const float, 3>(kEncoderLayer, "x", x), saved_of(kEncoderLayer, saved),
                  view<const float, 3>(kEncoderLayer, "y_gradient", y_gradient),
                  view<float, 3>(kEncoderLayer, "x_gradient", x_gradient));
  });
}

headlight_status headlight_transformer_decoder_layer_training_forward(
    const headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* memory,
    const headlight_tensor* y, headlight_saved_state* saved, const headlight_training_step* step,
    const headlight_attention_options* self_options, const headlight_attention_options* memory_options,
    headlight_error* error) {
  return call(kDecoderLayer, engine, error, [&](Engine& on) {
    as<TransformerDecoderLayer>(kDecoderLayer, layer)
        .forward(on, view<const float, 3>(kDecoderLayer, "x", x), view<const float, 3>(kDecoderLayer, "memory", memory),
                 view<float, 3>(kDecoderLayer, "y", y), saved_of(kDecoderLayer, saved),
                 training_step(kDecoderLayer, step), decoder_self_options(kDecoderLayer, self_options),
                 attention_options(kDecoderLayer, memory_options));
  });
}

headlight_status headlight_transformer_decoder_layer_backward(
    headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* memory,
    const headlight_saved_state* saved, const headlight_tensor* y_gradient, const headlight_tensor* x_gradient,
    const headlight_tensor* memory_gradient, headlight_error* error) {
  return call(kDecoderLayer, engine, error, [&](Engine& on) {
    to_change<TransformerDecoderLayer>(kDecoderLayer, layer)
        .backward(on, view<const float, 3>(kDecoderLayer, "x", x),
                  view<const float, 3>(kDecoderLayer, "memory", memory), saved_of(kDecoderLayer, saved),
                  view<const float, 3>(kDecoderLayer, "y_gradient", y_gradient),
                  view<float, 3>(kDecoderLayer, "x_gradient", x_gradient),
                  optional_view<float, 3>(kDecoderLayer, "memory_gradient", memory_gradient));
  });
}
