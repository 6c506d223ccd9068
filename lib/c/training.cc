// Training: gradients, what is kept for them, and the small layers; transformer_training.cc has the others.
#include "c/training.h"

#include <algorithm>
#include <cstring>

#include "c/layer_names.h"
#include "c/parameters.h"
#include "headlight/layers/feed_forward.h"
#include "headlight/layers/linear.h"
#include "layers/parameter_list.h"

namespace headlight::c {
namespace {

constexpr const char* kSavedState = "saved_state";

static_assert(static_cast<int>(Checkpoint::every_k_layers) == HEADLIGHT_CHECKPOINT_EVERY_K_LAYERS);

void stop_training(headlight_layer& layer) {
  layer.layer->set_training(false);
  layer.training.reset();
  layer.settle();
}

void start_training(headlight_layer& layer) {
  try {
    layer.training = std::make_shared<Training>();
    layer.layer->set_training(true);
  } catch (...) {
    stop_training(layer);
    throw;
  }
  layer.settle();
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_layer_set_training(headlight_layer* layer, int32_t training, headlight_error* error) {
  return call(error, [&] {
    headlight_layer& handle = required(kLayer, "layer", layer);
    if ((handle.training != nullptr) == (training != 0)) return;
    training != 0 ? start_training(handle) : stop_training(handle);
  });
}

void headlight_layer_zero_gradients(headlight_layer* layer) {
  if (layer == nullptr) return;
  for (const layers::ParameterPlace& place : layer->parameters) {
    const std::span<float> gradient = layers::gradient_of(place);
    std::fill(gradient.begin(), gradient.end(), 0.0f);
  }
}

headlight_status headlight_layer_get_gradient(const headlight_layer* layer, const char* name,
                                              const headlight_tensor* values, headlight_error* error) {
  return call(error, [&] {
    const layers::ParameterPlace& place = matching(kLayer, required(kLayer, "layer", layer).parameters, name, values);
    if (layer->training == nullptr) refuse(kLayer, "is not in training, expected headlight_layer_set_training before");
    const std::span<const float> gradient = layers::gradient_of(place);
    std::memcpy(values->data, gradient.data(), gradient.size_bytes());
  });
}

headlight_status headlight_saved_state_create(const headlight_saved_state_options* options,
                                              headlight_saved_state** saved, headlight_error* error) {
  return create(kSavedState, saved, error, [&] {
    const Fields fields(kSavedState, "options", options);
    const auto checkpoint =
        enumerated<Checkpoint>(kSavedState, "checkpoint", fields->checkpoint, HEADLIGHT_CHECKPOINT_KEEP_LINEAR,
                               HEADLIGHT_CHECKPOINT_EVERY_K_LAYERS);
    return std::make_unique<headlight_saved_state>(headlight_saved_state{
        SavedState(number_type(kSavedState, "activations", fields->activations), checkpoint, fields->k)});
  });
}

void headlight_saved_state_destroy(headlight_saved_state* saved) { delete saved; }

size_t headlight_saved_state_bytes(const headlight_saved_state* saved) {
  return saved == nullptr ? 0 : saved->state.bytes();
}

headlight_status headlight_linear_backward(headlight_layer* layer, headlight_engine* engine, const headlight_tensor* x,
                                           const headlight_tensor* y_gradient, const headlight_tensor* x_gradient,
                                           const headlight_tensor* residual, headlight_error* error) {
  return call(kLinear, engine, error, [&](Engine& on) {
    to_change<Linear>(kLinear, layer)
        .backward(on, view<const float, 2>(kLinear, "x", x), view<const float, 2>(kLinear, "y_gradient", y_gradient),
                  optional_view<float, 2>(kLinear, "x_gradient", x_gradient),
                  optional_view<const float, 2>(kLinear, "residual", residual));
  });
}

headlight_status headlight_layer_norm_layer_backward(headlight_layer* layer, headlight_engine* engine,
                                                     const headlight_tensor* x, const headlight_tensor* y_gradient,
                                                     const headlight_tensor* x_gradient,
                                                     const headlight_tensor* residual, headlight_error* error) {
  return call(kLayerNorm, engine, error, [&](Engine& on) {
    to_change<LayerNorm>(kLayerNorm, layer)
        .backward(on, view<const float, 2>(kLayerNorm, "x", x),
                  view<const float, 2>(kLayerNorm, "y_gradient", y_gradient),
                  optional_view<float, 2>(kLayerNorm, "x_gradient", x_gradient),
                  optional_view<const float, 2>(kLayerNorm, "residual", residual));
  });
}

headlight_status headlight_feed_forward_training_forward(const headlight_layer* layer, headlight_engine* engine,
                                                         const headlight_tensor* x, const headlight_tensor* y,
                                                         headlight_saved_state* saved,
                                                         const headlight_training_step* step,
                                                         const headlight_tensor* residual, headlight_error* error) {
  return call(kFeedForward, engine, error, [&](Engine& on) {
    as<FeedForward>(kFeedForward, layer)
        .forward(on, view<const float, 3>(kFeedForward, "x", x), view<float, 3>(kFeedForward, "y", y),
                 saved_of(kFeedForward, saved), training_step(kFeedForward, step),
                 optional_view<const float, 3>(kFeedForward, "residual", residual));
  });
}

headlight_status headlight_feed_forward_backward(headlight_layer* layer, headlight_engine* engine,
                                                 const headlight_tensor* x, const headlight_saved_state* saved,
                                                 const headlight_tensor* y_gradient, const headlight_tensor* x_gradient,
                                                 const headlight_tensor* residual, headlight_error* error) {
  return call(kFeedForward, engine, error, [&](Engine& on) {
    to_change<FeedForward>(kFeedForward, layer)
        .backward(on, view<const float, 3>(kFeedForward, "x", x), saved_of(kFeedForward, saved),
                  view<const float, 3>(kFeedForward, "y_gradient", y_gradient),
                  optional_view<float, 3>(kFeedForward, "x_gradient", x_gradient),
                  optional_view<const float, 3>(kFeedForward, "residual", residual));
  });
}
