// The layers that others are made of: linear, normalisation, feed-forward.
#include "c/handles.h"
#include "c/layer_names.h"
#include "headlight/layers/feed_forward.h"
#include "headlight/layers/linear.h"

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_linear_create(const headlight_linear_options* options, headlight_layer** layer,
                                         headlight_error* error) {
  return create(kLinear, layer, error, [&] {
    const Fields fields(kLinear, "options", options, HEADLIGHT_C_FIELDS(headlight_linear_options));
    return make_layer<Linear>(fields->in_features, fields->out_features, fields->without_bias == 0);
  });
}

headlight_status headlight_linear_forward(const headlight_layer* layer, headlight_engine* engine,
                                          const headlight_tensor* x, const headlight_tensor* y,
                                          headlight_activation activation, const headlight_tensor* residual,
                                          headlight_error* error) {
  return call(kLinear, engine, error, [&](Engine& on) {
    as<Linear>(kLinear, layer)
        .forward(on, view<const float, 2>(kLinear, "x", x), view<float, 2>(kLinear, "y", y),
                 {.activation = activation_of(kLinear, activation, Activation::none),
                  .residual = optional_view<const float, 2>(kLinear, "residual", residual)});
  });
}

headlight_status headlight_linear_workspace_bytes(const headlight_layer* layer, const headlight_engine* engine,
                                                  int64_t rows, size_t* bytes, headlight_error* error) {
  return call(kLinear, engine, error, [&](const Engine& on) {
    required(kLinear, "bytes", bytes) = as<Linear>(kLinear, layer).workspace_bytes(on, rows);
  });
}

headlight_status headlight_linear_reserve(const headlight_layer* layer, headlight_engine* engine, int64_t rows,
                                          headlight_error* error) {
  return call(kLinear, engine, error, [&](Engine& on) { as<Linear>(kLinear, layer).reserve(on, rows); });
}

headlight_status headlight_layer_norm_layer_create(const headlight_layer_norm_layer_options* options,
                                                   headlight_layer** layer, headlight_error* error) {
  return create(kLayerNorm, layer, error, [&] {
    const Fields fields(kLayerNorm, "options", options, HEADLIGHT_C_FIELDS(headlight_layer_norm_layer_options));
    const float epsilon = fields->epsilon == nullptr ? 1e-5f : *fields->epsilon;
    return make_layer<LayerNorm>(fields->width, epsilon, fields->without_bias == 0);
  });
}

headlight_status headlight_layer_norm_layer_forward(const headlight_layer* layer, headlight_engine* engine,
                                                    const headlight_tensor* x, const headlight_tensor* y,
                                                    headlight_error* error) {
  return call(kLayerNorm, engine, error, [&](Engine& on) {
    as<LayerNorm>(kLayerNorm, layer)
        .forward(on, view<const float, 2>(kLayerNorm, "x", x), view<float, 2>(kLayerNorm, "y", y));
  });
}

headlight_status headlight_feed_forward_create(const headlight_feed_forward_options* options, headlight_layer** layer,
                                               headlight_error* error) {
  return create(kFeedForward, layer, error, [&] {
    const Fields fields(kFeedForward, "options", options);
    FeedForwardOptions wanted;
    wanted.width = fields->width;
    wanted.hidden_width = fields->hidden_width;
    wanted.activation = activation_of(kFeedForward, fields->activation, wanted.activation);
    wanted.bias = fields->without_bias == 0;
    if (fields->dropout != nullptr) wanted.dropout = *fields->dropout;
    return make_layer<FeedForward>(wanted);
  });
}

headlight_status headlight_feed_forward_forward(const headlight_layer* layer, headlight_engine* engine,
                                                const headlight_tensor* x, const headlight_tensor* y,
                                                const headlight_tensor* residual, headlight_error* error) {
  return call(kFeedForward, engine, error, [&](Engine& on) {
    as<FeedForward>(kFeedForward, layer)
        .forward(on, view<const float, 3>(kFeedForward, "x", x), view<float, 3>(kFeedForward, "y", y),
                 optional_view<const float, 3>(kFeedForward, "residual", residual));
  });
}

headlight_status headlight_feed_forward_workspace_bytes(const headlight_layer* layer, const headlight_engine* engine,
                                                        int64_t batch, int64_t length, size_t* bytes,
                                                        headlight_error* error) {
  return call(kFeedForward, engine, error, [&](const Engine& on) {
    required(kFeedForward, "bytes", bytes) = as<FeedForward>(kFeedForward, layer).workspace_bytes(on, batch, length);
  });
}

headlight_status headlight_feed_forward_reserve(const headlight_layer* layer, headlight_engine* engine, int64_t batch,
                                                int64_t length, headlight_error* error) {
  return call(kFeedForward, engine, error,
              [&](Engine& on) { as<FeedForward>(kFeedForward, layer).reserve(on, batch, length); });
}
