// Part of headlight/headlight.h: attention over keys and values that come piece by piece.
#pragma once

#include "headlight/c/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// headlight_attention of a set of queries over a sequence of keys and values that is longer than memory, or not there
// yet: create, append as often as there are keys, finish, destroy. The bits are those of one call over all keys at
// once, however they are cut into pieces. Memory: (Dv + some 20) floats for each query row and head, and 512 keys and
// values at most.
typedef struct headlight_attention_stream headlight_attention_stream;

// query [B, Lq, Hq, Dqk]. Its memory and that of the options' lists (alibi, sinks, starts) must stay as it is until
// the stream has ended, and the engine outlive the stream; one thread at a time. Refused are options that need the
// whole length or have an axis of keys (lengths, packed sequences, mask, bias, probabilities, scores, and bottom-right
// unless query_start says where rows stand); log_sum_exp is given to finish.
HEADLIGHT_API headlight_status headlight_attention_stream_create(
    headlight_engine* engine, const headlight_tensor* query, int64_t key_value_heads, int64_t value_dim,
    const headlight_attention_options* options, headlight_attention_stream** stream, headlight_error* error);
HEADLIGHT_API void headlight_attention_stream_destroy(headlight_attention_stream* stream);

// The next n ≥ 0 keys: key [B, n, Hkv, Dqk], value [B, n, Hkv, Dv]. They are not needed after the call. When it fails
// nothing has been taken.
HEADLIGHT_API headlight_status headlight_attention_stream_append(headlight_attention_stream* stream,
                                                                 const headlight_tensor* key,
                                                                 const headlight_tensor* value, headlight_error* error);

// Keys so far; bytes of memory held between calls.
HEADLIGHT_API int64_t headlight_attention_stream_keys(const headlight_attention_stream* stream);
HEADLIGHT_API size_t headlight_attention_stream_bytes(const headlight_attention_stream* stream);

// out [B, Lq, Hq, Dv] and, where given, log_sum_exp [B, Hq, Lq]. The stream has then ended: append and finish are
// refused.
HEADLIGHT_API headlight_status headlight_attention_stream_finish(headlight_attention_stream* stream,
                                                                 const headlight_tensor* out,
                                                                 const headlight_tensor* log_sum_exp,
                                                                 headlight_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
