// Multi-head attention and the layers of the transformer.
#include "c/attention_options.h"
#include "c/handles.h"
#include "c/layer_names.h"
#include "headlight/layers/multi_head_attention.h"
#include "headlight/layers/transformer.h"

namespace headlight::c {
namespace {

static_assert(static_cast<int>(SharedInputs::none) == HEADLIGHT_SHARED_NONE);
static_assert(static_cast<int>(Norm::pre) == HEADLIGHT_NORM_PRE);
static_assert(static_cast<int>(Merge::gated_by_element) == HEADLIGHT_MERGE_GATED_BY_ELEMENT);

MultiHeadAttentionShape layer_shape(const headlight_multi_head_attention_shape* given) {
  required(kMultiHeadAttention, "shape", given);
  const Fields fields(kMultiHeadAttention, "shape", given, HEADLIGHT_C_FIELDS(headlight_multi_head_attention_shape));
  return {.batch = fields->batch == 0 ? 1 : fields->batch,
          .query_length = fields->query_length,
          .key_length = fields->key_length,
          .inputs = enumerated<SharedInputs>(kMultiHeadAttention, "inputs", fields->inputs, HEADLIGHT_SHARED_ALL,
                                             HEADLIGHT_SHARED_NONE)};
}

TransformerLayerOptions transformer_options(const char* operation, const headlight_transformer_layer_options* given) {
  const Fields fields(operation, "options", given, HEADLIGHT_C_FIELDS(headlight_transformer_layer_options));
  TransformerLayerOptions options;
  options.width = fields->width;
  options.heads = fields->heads;
  options.feed_forward_width = fields->feed_forward_width;
  options.norm = enumerated<Norm>(operation, "norm", fields->norm, HEADLIGHT_NORM_POST, HEADLIGHT_NORM_PRE);
  options.activation = activation_of(operation, fields->activation, options.activation);
  if (fields->layer_norm_epsilon != nullptr) options.layer_norm_epsilon = *fields->layer_norm_epsilon;
  options.bias = fields->without_bias == 0;
  options.merge = merge_of(operation, fields->merge);
  if (fields->dropout != nullptr) options.dropout = *fields->dropout;
  options.orthogonal = fields->orthogonal != 0;
  return options;
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

// A view of a string literal, which ends in a zero byte.
const char* headlight_merge_name(headlight_merge merge) {
  if (merge < HEADLIGHT_MERGE_CONCATENATE || merge > HEADLIGHT_MERGE_GATED_BY_ELEMENT) return "";
  return name(static_cast<Merge>(merge)).data();
}

headlight_merge headlight_merge_from_name(const char* name) {
  const std::optional<Merge> merge = parse_merge(name == nullptr ? "" : name);
  return merge ? static_cast<headlight_merge>(*merge) : -1;
}

headlight_status headlight_multi_head_attention_create(const headlight_multi_head_attention_options* options,
                                                       headlight_layer** layer, headlight_error* error) {
  return create(kMultiHeadAttention, layer, error, [&] {
    const Fields fields(kMultiHeadAttention, "options", options);
    return make_layer<MultiHeadAttention>(MultiHeadAttentionOptions{
        .width = fields->width,
        .heads = fields->heads,
        .key_value_heads = fields->key_value_heads,
        .key_width = fields->key_width,
        .value_width = fields->value_width,
        .bias = fields->without_bias == 0,
        .packed_projection = fields->separate_projections == 0,
        .dropout = fields->dropout == nullptr ? 0.0f : *fields->dropout,
        .merge = merge_of(kMultiHeadAttention, fields->merge),
        .orthogonal = fields->orthogonal != 0,
    });
  });
}

headlight_status headlight_multi_head_attention_forward(const headlight_layer* layer, headlight_engine* engine,
                                                        const headlight_tensor* query, const headlight_tensor* key,
                                                        const headlight_tensor* value, const headlight_tensor* out,
                                                        const headlight_attention_options* options,
                                                        const headlight_tensor* residual,
                                                        const headlight_head_access* heads, headlight_error* error) {
  return call(kMultiHeadAttention, engine, error, [&](Engine& on) {
    as<MultiHeadAttention>(kMultiHeadAttention, layer)
        .forward(on, view<const float, 3>(kMultiHeadAttention, "query", query),
                 view<const float, 3>(kMultiHeadAttention, "key", key),
                 view<const float, 3>(kMultiHeadAttention, "value", value),
                 view<float, 3>(kMultiHeadAttention, "out", out), attention_options(kMultiHeadAttention, options),
                 optional_view<const float, 3>(kMultiHeadAttention, "residual", residual),
                 head_access(kMultiHeadAttention, heads));
  });
}

headlight_status headlight_multi_head_attention_workspace_bytes(const headlight_layer* layer,
                                                                const headlight_engine* engine,
                                                                const headlight_multi_head_attention_shape* shape,
                                                                size_t* bytes, headlight_error* error) {
  return call(kMultiHeadAttention, engine, error, [&](const Engine& on) {
    required(kMultiHeadAttention, "bytes", bytes) =
        as<MultiHeadAttention>(kMultiHeadAttention, layer).workspace_bytes(on, layer_shape(shape));
  });
}

headlight_status headlight_multi_head_attention_reserve(const headlight_layer* layer, headlight_engine* engine,
                                                        const headlight_multi_head_attention_shape* shape,
                                                        headlight_error* error) {
  return call(kMultiHeadAttention, engine, error,
              [&](Engine& on) { as<MultiHeadAttention>(kMultiHeadAttention, layer).reserve(on, layer_shape(shape)); });
}

headlight_status headlight_transformer_encoder_layer_create(const headlight_transformer_layer_options* options,
                                                            headlight_layer** layer, headlight_error* error) {
  return create(kEncoderLayer, layer, error,
                [&] { return make_layer<TransformerEncoderLayer>(transformer_options(kEncoderLayer, options)); });
}

headlight_status headlight_transformer_encoder_layer_forward(const headlight_layer* layer, headlight_engine* engine,
                                                             const headlight_tensor* x, const headlight_tensor* y,
                                                             const headlight_attention_options* options,
                                                             const headlight_head_access* heads,
                                                             headlight_error* error) {
  return call(kEncoderLayer, engine, error, [&](Engine& on) {
    as<TransformerEncoderLayer>(kEncoderLayer, layer)
        .forward(on, view<const float, 3>(kEncoderLayer, "x", x), view<float, 3>(kEncoderLayer, "y", y),
                 attention_options(kEncoderLayer, options), head_access(kEncoderLayer, heads));
  });
}

headlight_status headlight_transformer_encoder_layer_workspace_bytes(const headlight_layer* layer,
                                                                     const headlight_engine* engine, int64_t batch,
                                                                     int64_t length, size_t* bytes,
                                                                     headlight_error* error) {
  return call(kEncoderLayer, engine, error, [&](const Engine& on) {
    required(kEncoderLayer, "bytes", bytes) =
        as<TransformerEncoderLayer>(kEncoderLayer, layer).workspace_bytes(on, batch, length);
  });
}

headlight_status headlight_transformer_encoder_layer_reserve(const headlight_layer* layer, headlight_engine* engine,
                                                             int64_t batch, int64_t length, headlight_error* error) {
  return call(kEncoderLayer, engine, error,
              [&](Engine& on) { as<TransformerEncoderLayer>(kEncoderLayer, layer).reserve(on, batch, length); });
}

headlight_status headlight_transformer_decoder_layer_create(const headlight_transformer_layer_options* options,
                                                            headlight_layer** layer, headlight_error* error) {
  return create(kDecoderLayer, layer, error,
                [&] { return make_layer<TransformerDecoderLayer>(transformer_options(kDecoderLayer, options)); });
}

headlight_status headlight_transformer_decoder_layer_forward(const headlight_layer* layer, headlight_engine* engine,
                                                             const headlight_tensor* x, const headlight_tensor* memory,
                                                             const headlight_tensor* y,
                                                             const headlight_attention_options* self_options,
                                                             const headlight_attention_options* memory_options,
                                                             headlight_error* error) {
  return call(kDecoderLayer, engine, error, [&](Engine& on) {
    as<TransformerDecoderLayer>(kDecoderLayer, layer)
        .forward(on, view<const float, 3>(kDecoderLayer, "x", x), view<const float, 3>(kDecoderLayer, "memory", memory),
                 view<float, 3>(kDecoderLayer, "y", y), decoder_self_options(kDecoderLayer, self_options),
                 attention_options(kDecoderLayer, memory_options));
  });
}

headlight_status headlight_transformer_decoder_layer_workspace_bytes(const headlight_layer* layer,
                                                                     const headlight_engine* engine, int64_t batch,
                                                                     int64_t length, int64_t memory_length,
                                                                     size_t* bytes, headlight_error* error) {
  return call(kDecoderLayer, engine, error, [&](const Engine& on) {
    required(kDecoderLayer, "bytes", bytes) =
        as<TransformerDecoderLayer>(kDecoderLayer, layer).workspace_bytes(on, batch, length, memory_length);
  });
}

headlight_status headlight_transformer_decoder_layer_reserve(const headlight_layer* layer, headlight_engine* engine,
                                                             int64_t batch, int64_t length, int64_t memory_length,
                                                             headlight_error* error) {
  return call(kDecoderLayer, engine, error, [&](Engine& on) {
    as<TransformerDecoderLayer>(kDecoderLayer, layer).reserve(on, batch, length, memory_length);
  });
}
