
#include "headlight/attention.h"

#include "c/attention_options.h"
#include "c/handles.h"
#include "headlight/attention_backward.h"

namespace headlight::c {
namespace {

constexpr const char* kAttention = "attention";
constexpr const char* kAttentionBackward = "attention_backward";

AttentionShape attention_shape(const headlight_attention_shape* given) {
  return c::attention_shape(kAttention, "shape", given);
}

// Of a shape that attention_shape() has read.
NumberType query_gradient_type(const headlight_attention_shape& given) {
  const Fields fields(kAttentionBackward, "shape", &given, HEADLIGHT_C_FIELDS(headlight_attention_shape));
  return stored_type(kAttentionBackward, "shape.query_gradient", fields->query_gradient);
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_attention(headlight_engine* engine, const headlight_tensor* query,
                                     const headlight_tensor* key, const headlight_tensor* value,
                                     const headlight_tensor* out, const headlight_attention_options* options,
                                     headlight_error* error) {
  return call(kAttention, engine, error, [&](Engine& on) {
    const AttentionOptions given = attention_options(kAttention, options);
    // float32's own way is the faster one.
    if (all_floats({query, key, value, out})) {
      return attention(on, view<const float, 4>(kAttention, "query", query),
                       view<const float, 4>(kAttention, "key", key), view<const float, 4>(kAttention, "value", value),
                       view<float, 4>(kAttention, "out", out), given);
    }
    // One after another, as errors name them.
    const TypedView<4> queries = typed_view<4, const void*>(kAttention, "query", query);
    const TypedView<4> keys = typed_view<4, const void*>(kAttention, "key", key, true);
    const TypedView<4> values = typed_view<4, const void*>(kAttention, "value", value, true);
    attention(on, queries, keys, values, typed_view<4, void*>(kAttention, "out", out), given);
  });
}

headlight_status headlight_quantize_rows(headlight_engine* engine, const headlight_tensor* x,
                                         const headlight_tensor* numbers, const headlight_tensor* scales,
                                         headlight_error* error) {
  constexpr const char* kQuantize = "quantize_rows";
  return call(kQuantize, engine, error, [&](Engine& on) {
    quantize_rows(on, typed_view<4, const void*>(kQuantize, "x", x),
                  view<std::int8_t, 4>(kQuantize, "numbers", numbers), view<float, 3>(kQuantize, "scales", scales));
  });
}

headlight_status headlight_attention_workspace_bytes(const headlight_engine* engine,
                                                     const headlight_attention_shape* shape, size_t* bytes,
                                                     headlight_error* error) {
  return call(kAttention, engine, error, [&](const Engine& on) {
    required(kAttention, "bytes", bytes) = workspace_bytes(on, attention_shape(shape));
  });
}

headlight_status headlight_attention_reserve(headlight_engine* engine, const headlight_attention_shape* shape,
                                             headlight_error* error) {
  return call(kAttention, engine, error, [&](Engine& on) { reserve(on, attention_shape(shape)); });
}

headlight_status headlight_attention_backward(headlight_engine* engine, const headlight_tensor* query,
                                              const headlight_tensor* key, const headlight_tensor* value,
                                              const headlight_tensor* out, const headlight_tensor* log_sum_exp,
                                              const headlight_tensor* out_gradient,
                                              const headlight_attention_gradients* gradients,
                                              const headlight_attention_options* options, headlight_error* error) {
  return call(kAttentionBackward, engine, error, [&](Engine& on) {
    // One after another, as errors name them.
    const TypedView<4> queries = typed_view<4, const void*>(kAttentionBackward, "query", query);
    const TypedView<4> keys = typed_view<4, const void*>(kAttentionBackward, "key", key);
    const TypedView<4> values = typed_view<4, const void*>(kAttentionBackward, "value", value);
    const TypedView<4> outs = typed_view<4, const void*>(kAttentionBackward, "out", out);
    const auto sums = view<const float, 3>(kAttentionBackward, "log_sum_exp", log_sum_exp);
    const TypedView<4> by_out = typed_view<4, const void*>(kAttentionBackward, "out_gradient", out_gradient);
    const TypedAttentionGradients to = attention_gradients(kAttentionBackward, gradients);
    attention_backward(on, queries, keys, values, outs, sums, by_out, to,
                       attention_options(kAttentionBackward, options));
  });
}

headlight_status headlight_attention_backward_workspace_bytes(const headlight_engine* engine,
                                                              const headlight_attention_shape* shape, size_t* bytes,
                                                              headlight_error* error) {
  return call(kAttentionBackward, engine, error, [&](const Engine& on) {
    const AttentionShape of_call = attention_shape(shape);
    required(kAttentionBackward, "bytes", bytes) = backward_workspace_bytes(on, of_call, query_gradient_type(*shape));
  });
}

headlight_status headlight_attention_backward_reserve(headlight_engine* engine, const headlight_attention_shape* shape,
                                                      headlight_error* error) {
  return call(kAttentionBackward, engine, error, [&](Engine& on) {
    const AttentionShape of_call = attention_shape(shape);
    reserve_backward(on, of_call, query_gradient_type(*shape));
  });
}
