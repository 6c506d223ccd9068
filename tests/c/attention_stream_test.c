// Attention over keys that come piece by piece, from C: the bits of all keys at once.
#include "check.h"

enum { kB = 2, kLq = 9, kLk = 1300, kHq = 4, kHkv = 2, kD = 8, kDv = 5 };

static headlight_engine* engine;
static float query[kB * kLq * kHq * kD], key[kB * kLk * kHkv * kD], value[kB * kLk * kHkv * kDv];
static float whole[kB * kLq * kHq * kDv], out[kB * kLq * kHq * kDv], whole_lse[kB * kHq * kLq], lse[kB * kHq * kLq];
static headlight_tensor q, k, v, o, l;

// Keys [first, first + count): tensors that stay only for the call that they are handed to.
static headlight_status append(headlight_attention_stream* stream, int64_t first, int64_t count) {
  const int64_t key_shape[] = {kB, count, kHkv, kD}, key_strides[] = {kLk * kHkv * kD, kHkv * kD, kD, 1};
  const int64_t value_shape[] = {kB, count, kHkv, kDv}, value_strides[] = {kLk * kHkv * kDv, kHkv * kDv, kDv, 1};
  const headlight_tensor keys = {key + first * kHkv * kD, HEADLIGHT_FLOAT32, 4, key_shape, key_strides};
  const headlight_tensor values = {value + first * kHkv * kDv, HEADLIGHT_FLOAT32, 4, value_shape, value_strides};
  return headlight_attention_stream_append(stream, &keys, &values, &error);
}

static void same_bits(const headlight_attention_options* given) {
  headlight_attention_options options = {.struct_size = sizeof options};
  if (given != NULL) options = *given;
  options.log_sum_exp = &(headlight_tensor){whole_lse, HEADLIGHT_FLOAT32, 3, l.shape, NULL};
  const headlight_tensor expected = {whole, HEADLIGHT_FLOAT32, 4, o.shape, NULL};
  WORKS(headlight_attention(engine, &q, &k, &v, &expected, &options, &error));
  for (int64_t piece = 7; piece <= kLk; piece += 613) {
    headlight_attention_stream* stream = NULL;
    WORKS(headlight_attention_stream_create(engine, &q, kHkv, kDv, given, &stream, &error));
    const size_t bytes = headlight_attention_stream_bytes(stream);
    CHECK(headlight_attention_stream_keys(stream) == 0 && bytes > 0);
    for (int64_t first = 0; first < kLk; first += piece) {
      WORKS(append(stream, first, first + piece < kLk ? piece : kLk - first));
    }
    WORKS(append(stream, kLk, 0));
    CHECK(headlight_attention_stream_keys(stream) == kLk && headlight_attention_stream_bytes(stream) == bytes);
    memset(out, 0xFF, sizeof out);
    memset(lse, 0xFF, sizeof lse);
    WORKS(headlight_attention_stream_finish(stream, &o, &l, &error));
    CHECK(memcmp(out, whole, sizeof out) == 0 && memcmp(lse, whole_lse, sizeof lse) == 0);
    REFUSED("finish()", headlight_attention_stream_finish(stream, &o, NULL, &error));
    REFUSED("finish()", append(stream, 0, 1));
    headlight_attention_stream_destroy(stream);
  }
}

static void refusals(void) {
  headlight_attention_stream* stream = NULL;
  headlight_attention_options options = {.struct_size = sizeof options, .causal = HEADLIGHT_CAUSAL_BOTTOM_RIGHT};
  REFUSED("options.causal", headlight_attention_stream_create(engine, &q, kHkv, kDv, &options, &stream, &error));
  const headlight_tensor bias = TENSOR(key, 1, 1, kLq, kLk);
  options = (headlight_attention_options){.struct_size = sizeof options, .bias = &bias};
  REFUSED("options.bias", headlight_attention_stream_create(engine, &q, kHkv, kDv, &options, &stream, &error));
  options = (headlight_attention_options){.struct_size = sizeof options, .log_sum_exp = &l};
  REFUSED("log_sum_exp", headlight_attention_stream_create(engine, &q, kHkv, kDv, &options, &stream, &error));
  REFUSED("engine", headlight_attention_stream_create(NULL, &q, kHkv, kDv, NULL, &stream, &error));
  REFUSED("query is", headlight_attention_stream_create(engine, NULL, kHkv, kDv, NULL, &stream, &error));
  REFUSED("key_value_heads is -1", headlight_attention_stream_create(engine, &q, -1, kDv, NULL, &stream, &error));
  REFUSED("value_dim is -1", headlight_attention_stream_create(engine, &q, kHkv, -1, NULL, &stream, &error));
  REFUSED("heads", headlight_attention_stream_create(engine, &q, 3, kDv, NULL, &stream, &error));
  REFUSED("result", headlight_attention_stream_create(engine, &q, kHkv, kDv, NULL, NULL, &error));
  CHECK(stream == NULL);
  headlight_attention_stream_destroy(NULL);
  CHECK(headlight_attention_stream_keys(NULL) == 0 && headlight_attention_stream_bytes(NULL) == 0);
  REFUSED("stream is", headlight_attention_stream_append(NULL, &k, &v, &error));
  REFUSED("stream is", headlight_attention_stream_finish(NULL, &o, NULL, &error));

  WORKS(headlight_attention_stream_create(engine, &q, kHkv, kDv, NULL, &stream, &error));
  REFUSED("key is", headlight_attention_stream_append(stream, NULL, &v, &error));
  REFUSED("value is", headlight_attention_stream_append(stream, &k, NULL, &error));
  REFUSED("key has shape", headlight_attention_stream_append(stream, &v, &v, &error));
  REFUSED("value has shape", headlight_attention_stream_append(stream, &k, &k, &error));
  REFUSED("out is", headlight_attention_stream_finish(stream, NULL, NULL, &error));
  REFUSED("out has shape", headlight_attention_stream_finish(stream, &q, NULL, &error));
  REFUSED("log_sum_exp has", headlight_attention_stream_finish(stream, &o, &o, &error));
  CHECK(headlight_attention_stream_keys(stream) == 0);
  // No keys at all: every row is empty. And a stream that is left before its end.
  WORKS(headlight_attention_stream_finish(stream, &o, &l, &error));
  CHECK(out[0] == 0.0f && lse[0] == -HUGE_VALF);
  headlight_attention_stream_destroy(stream);
  WORKS(headlight_attention_stream_create(engine, &q, kHkv, kDv, NULL, &stream, &error));
  WORKS(append(stream, 0, 600));
  headlight_attention_stream_destroy(stream);
}

int main(void) {
  engine = make_engine(2);
  fill(query, sizeof query / sizeof *query, 1);
  fill(key, sizeof key / sizeof *key, 2);
  fill(value, sizeof value / sizeof *value, 3);
  q = TENSOR(query, kB, kLq, kHq, kD);
  k = TENSOR(key, kB, kLk, kHkv, kD);
  v = TENSOR(value, kB, kLk, kHkv, kDv);
  o = TENSOR(out, kB, kLq, kHq, kDv);
  l = TENSOR(lse, kB, kHq, kLq);
  same_bits(NULL);
  const headlight_window window = {.left = 3, .right = 700};
  const float scale = 0.5f;
  const headlight_dropout dropout = {.probability = 0.5f, .stream = 1, .seed = 2};
  same_bits(&(headlight_attention_options){.struct_size = sizeof(headlight_attention_options), .window = &window});
  same_bits(&(headlight_attention_options){
      .struct_size = sizeof(headlight_attention_options), .scale = &scale, .dropout = &dropout});
  same_bits(&(headlight_attention_options){
      .struct_size = sizeof(headlight_attention_options), .causal = HEADLIGHT_CAUSAL_TOP_LEFT, .chunk = 4});
  refusals();
  headlight_engine_destroy(engine);
  return check_result();
}
