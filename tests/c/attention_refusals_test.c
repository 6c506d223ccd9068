// What attention refuses from C, and in which words.
#include "check.h"
#include "headlight/headlight.h"

enum { kB = 2, kLq = 6, kLk = 9, kHq = 4, kHkv = 2, kD = 8, kDv = 5 };

static headlight_engine* engine;
static float query[kB * kLq * kHq * kD], key[kB * kLk * kHkv * kD], value[kB * kLk * kHkv * kDv];
static float out[kB * kLq * kHq * kDv], numbers[kHq + 1];

static void reset(headlight_attention_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

static void operands(void) {
  const headlight_tensor q = TENSOR(query, kB, kLq, kHq, kD), k = TENSOR(key, kB, kLk, kHkv, kD);
  const headlight_tensor v = TENSOR(value, kB, kLk, kHkv, kDv), o = TENSOR(out, kB, kLq, kHq, kDv);
  REFUSED("engine", headlight_attention(NULL, &q, &k, &v, &o, NULL, &error));
  REFUSED("query is", headlight_attention(engine, NULL, &k, &v, &o, NULL, &error));
  REFUSED("key is", headlight_attention(engine, &q, NULL, &v, &o, NULL, &error));
  REFUSED("value is", headlight_attention(engine, &q, &k, NULL, &o, NULL, &error));
  REFUSED("out is", headlight_attention(engine, &q, &k, &v, NULL, NULL, &error));
  REFUSED("key has shape", headlight_attention(engine, &q, &TENSOR(key, kB, kLk, kHkv, 3), &v, &o, NULL, &error));
  REFUSED("rank 3, expected 4", headlight_attention(engine, &TENSOR(query, kB, kLq, kHq), &k, &v, &o, NULL, &error));
  REFUSED("overlaps", headlight_attention(engine, &q, &k, &v, &TENSOR(query, kB, kLq, kHq, kDv), NULL, &error));
}

static void masks(void) {
  const headlight_tensor q = TENSOR(query, kB, kLq, kHq, kD), k = TENSOR(key, kB, kLk, kHkv, kD);
  const headlight_tensor v = TENSOR(value, kB, kLk, kHkv, kDv), o = TENSOR(out, kB, kLq, kHq, kDv);
  headlight_attention_options options;
  reset(&options);
  options.causal = 3;
  REFUSED("causal is 3", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  reset(&options);
  options.align = -1;
  REFUSED("align is -1", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  reset(&options);
  options.chunk = -1;
  REFUSED("chunk", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  const headlight_window window = {.left = -2, .right = 0};
  reset(&options);
  options.window = &window;
  REFUSED("window", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  uint8_t entry = 1;
  headlight_tensor mask = {&entry, HEADLIGHT_UINT8, 4, INTS(1, 1, 1, 1), NULL};
  reset(&options);
  options.mask = &mask;
  REFUSED("mask_means is 0", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  options.mask_means = HEADLIGHT_MASK_MEANS_ATTEND;
  mask.type = HEADLIGHT_FLOAT32;
  REFUSED("mask has type 0, expected 2", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  const int64_t short_lengths[] = {1};
  reset(&options);
  options.key_lengths = (headlight_indices){short_lengths, 1};
  REFUSED("key_lengths", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  options.key_lengths = (headlight_indices){NULL, kB};
  REFUSED("key_lengths has 2 entries and no memory", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
}

static void other_options(void) {
  const headlight_tensor q = TENSOR(query, kB, kLq, kHq, kD), k = TENSOR(key, kB, kLk, kHkv, kD);
  const headlight_tensor v = TENSOR(value, kB, kLk, kHkv, kDv), o = TENSOR(out, kB, kLq, kHq, kDv);
  headlight_attention_options options;
  const float below = -1;
  reset(&options);
  options.softcap = &below;
  REFUSED("softcap is -1", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  reset(&options);
  options.alibi = &TENSOR(numbers, kHq - 1);
  REFUSED("alibi has 3 entries, expected Hq = 4", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  reset(&options);
  options.sinks = &TENSOR(numbers, kHq + 1);
  REFUSED("sinks has 5 entries, expected Hq = 4", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  const int64_t before_all[] = {-1};
  reset(&options);
  options.key_start = (headlight_indices){before_all, 1};
  REFUSED("key_start is -1, expected 0 to 2^60", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  reset(&options);
  options.scores_at = -1;
  REFUSED("scores_at is -1", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
  struct {
    headlight_attention_options options;
    int64_t later;
  } longer = {.later = 1};
  reset(&longer.options);
  longer.options.struct_size = sizeof longer;
  REFUSED("options has a value", headlight_attention(engine, &q, &k, &v, &o, &longer.options, &error));
  reset(&options);
  options.struct_size = 3;
  REFUSED("struct_size is 3", headlight_attention(engine, &q, &k, &v, &o, &options, &error));
}

int main(void) {
  engine = make_engine(2);
  operands();
  masks();
  other_options();
  headlight_engine_destroy(engine);
  return check_result();
}
