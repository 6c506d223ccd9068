#include "headlight/attention_stream.h"

#include "c/attention_options.h"
#include "c/handles.h"
#include "headlight/c/attention_stream.h"

struct headlight_attention_stream {
  headlight::AttentionStream stream;
};

namespace headlight::c {
namespace {

constexpr const char* kAttentionStream = "attention_stream";

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_attention_stream_create(headlight_engine* engine, const headlight_tensor* query,
                                                   int64_t key_value_heads, int64_t value_dim,
                                                   const headlight_attention_options* options,
                                                   headlight_attention_stream** stream, headlight_error* error) {
  return create(kAttentionStream, stream, error, [&] {
    return std::make_unique<headlight_attention_stream>(headlight_attention_stream{
        {engine_of(kAttentionStream, engine), view<const float, 4>(kAttentionStream, "query", query), key_value_heads,
         value_dim, attention_options(kAttentionStream, options)}});
  });
}

void headlight_attention_stream_destroy(headlight_attention_stream* stream) { delete stream; }

headlight_status headlight_attention_stream_append(headlight_attention_stream* stream, const headlight_tensor* key,
                                                   const headlight_tensor* value, headlight_error* error) {
  return call(error, [&] {
    required(kAttentionStream, "stream", stream)
        .stream.append(view<const float, 4>(kAttentionStream, "key", key),
                       view<const float, 4>(kAttentionStream, "value", value));
  });
}

int64_t headlight_attention_stream_keys(const headlight_attention_stream* stream) {
  return stream == nullptr ? 0 : stream->stream.keys();
}

size_t headlight_attention_stream_bytes(const headlight_attention_stream* stream) {
  return stream == nullptr ? 0 : stream->stream.bytes();
}

headlight_status headlight_attention_stream_finish(headlight_attention_stream* stream, const headlight_tensor* out,
                                                   const headlight_tensor* log_sum_exp, headlight_error* error) {
  return call(error, [&] {
    required(kAttentionStream, "stream", stream)
        .stream.finish(view<float, 4>(kAttentionStream, "out", out),
                       optional_view<float, 3>(kAttentionStream, "log_sum_exp", log_sum_exp));
  });
}
