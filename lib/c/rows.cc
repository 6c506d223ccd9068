// Softmax, layer normalisation, pooling, embedding lookup, non-linearities.
#include <array>

#include "c/handles.h"
#include "headlight/activation.h"
#include "headlight/normalization.h"

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_activate(headlight_engine* engine, headlight_activation activation,
                                    const headlight_tensor* x, const headlight_tensor* y, headlight_error* error) {
  constexpr const char* kName = "activate";
  return call(error, [&] {
    const auto function = enumerated<Activation>(kName, "activation", activation, HEADLIGHT_ACTIVATION_NONE,
                                                 HEADLIGHT_ACTIVATION_GELU_TANH);
    activate(engine_of(kName, engine), function, view<const float, 2>(kName, "x", x), view<float, 2>(kName, "y", y));
  });
}

headlight_status headlight_softmax(headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y,
                                   headlight_error* error) {
  constexpr const char* kName = "softmax";
  return call(error, [&] {
    softmax(engine_of(kName, engine), view<const float, 2>(kName, "x", x), view<float, 2>(kName, "y", y));
  });
}

headlight_status headlight_layer_norm(headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y,
                                      const headlight_layer_norm_options* options, headlight_error* error) {
  constexpr const char* kName = "layer_norm";
  return call(error, [&] {
    const Fields given(kName, "options", options);
    LayerNormOptions fields;
    fields.weight = optional_vector(kName, "weight", given->weight);
    fields.bias = optional_vector(kName, "bias", given->bias);
    fields.residual = optional_view<const float, 2>(kName, "residual", given->residual);
    if (given->epsilon != nullptr) fields.epsilon = *given->epsilon;
    layer_norm(engine_of(kName, engine), view<const float, 2>(kName, "x", x), view<float, 2>(kName, "y", y), fields);
  });
}

headlight_status headlight_embed(headlight_engine* engine, const headlight_tensor* tables, const headlight_indices* ids,
                                 size_t count, const headlight_tensor* out, headlight_error* error) {
  constexpr const char* kName = "embed";
  return call(error, [&] {
    std::array<Embedding, 8> embeddings;
    if (count > embeddings.size()) refuse(kName, std::to_string(count) + " tables given, expected 1 to 8");
    for (std::size_t table = 0; table < count; ++table) {
      embeddings[table].table = view<const float, 2>(kName, "a table", &required(kName, "tables", tables) + table);
      embeddings[table].ids = indices(kName, "ids", (&required(kName, "ids", ids))[table]);
    }
    embed(engine_of(kName, engine), {embeddings.data(), count}, view<float, 2>(kName, "out", out));
  });
}

headlight_status headlight_mean_pool(headlight_engine* engine, const headlight_tensor* x,
                                     const headlight_indices* offsets, const headlight_tensor* out,
                                     int32_t l2_normalize, headlight_error* error) {
  constexpr const char* kName = "mean_pool";
  return call(error, [&] {
    mean_pool(engine_of(kName, engine), view<const float, 2>(kName, "x", x),
              indices(kName, "offsets", required(kName, "offsets", offsets)), view<float, 2>(kName, "out", out),
              l2_normalize != 0);
  });
}
