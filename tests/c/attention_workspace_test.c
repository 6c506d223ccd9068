// What attention takes from an engine, told and reserved before.
#include "check.h"

enum { kB = 2, kLq = 6, kLk = 9, kHq = 4, kHkv = 2, kD = 8, kDv = 5 };

static void workspace(void) {
  headlight_attention_shape shape = {sizeof shape, 0, 100, 100, 0, 0, 64, 64, 0, 0};
  size_t bytes = 0, one = 0;
  headlight_engine* fresh = make_engine(1);
  WORKS(headlight_attention_workspace_bytes(fresh, &shape, &bytes, &error));
  shape.batch = shape.query_heads = shape.key_value_heads = 1;
  WORKS(headlight_attention_workspace_bytes(fresh, &shape, &one, &error));
  CHECK(bytes > 0 && one == bytes);
  WORKS(headlight_attention_reserve(fresh, &shape, &error));
  CHECK(headlight_engine_scratch_bytes(fresh) >= bytes);
  shape.head_dim = -1;
  REFUSED("attention: shape has the negative extent -1", headlight_attention_reserve(fresh, &shape, &error));
  shape.head_dim = 64;
  REFUSED("shape", headlight_attention_reserve(fresh, NULL, &error));
  REFUSED("bytes is", headlight_attention_workspace_bytes(fresh, &shape, NULL, &error));
  REFUSED("engine", headlight_attention_reserve(NULL, &shape, &error));
  headlight_engine_destroy(fresh);
}

// Once the scratch memory of the backward pass is there, the pass takes no more.
static void backward_workspace(void) {
  headlight_attention_shape shape = {sizeof shape, kB, kLq, kLk, kHq, kHkv, kD, kDv, 0, 0};
  size_t bytes = 0;
  headlight_engine* fresh = make_engine(1);
  WORKS(headlight_attention_backward_workspace_bytes(fresh, &shape, &bytes, &error));
  WORKS(headlight_attention_backward_reserve(fresh, &shape, &error));
  const size_t reserved = headlight_engine_scratch_bytes(fresh);
  CHECK(bytes > 0 && reserved >= bytes);

  static float query[kB * kLq * kHq * kD], key[kB * kLk * kHkv * kD], value[kB * kLk * kHkv * kDv];
  static float out[kB * kLq * kHq * kDv], log_sum_exp[kB * kHq * kLq], gradient[kB * kLq * kHq * kD];
  fill(query, sizeof query / sizeof *query, 1);
  fill(key, sizeof key / sizeof *key, 2);
  fill(value, sizeof value / sizeof *value, 3);
  const headlight_tensor q = TENSOR(query, kB, kLq, kHq, kD), k = TENSOR(key, kB, kLk, kHkv, kD);
  const headlight_tensor v = TENSOR(value, kB, kLk, kHkv, kDv), o = TENSOR(out, kB, kLq, kHq, kDv);
  const headlight_tensor l = TENSOR(log_sum_exp, kB, kHq, kLq), to = TENSOR(gradient, kB, kLq, kHq, kD);
  headlight_attention_options options = {.struct_size = sizeof options, .log_sum_exp = &l};
  headlight_engine* other = make_engine(1);
  WORKS(headlight_attention(other, &q, &k, &v, &o, &options, &error));
  headlight_engine_destroy(other);
  options.log_sum_exp = NULL;
  headlight_attention_gradients gradients = {.struct_size = sizeof gradients, .query = &to};
  WORKS(headlight_attention_backward(fresh, &q, &k, &v, &o, &l, &o, &gradients, &options, &error));
  CHECK(headlight_engine_scratch_bytes(fresh) == reserved);
  shape.key_length = -1;
  REFUSED("extent -1", headlight_attention_backward_reserve(fresh, &shape, &error));
  REFUSED("engine", headlight_attention_backward_reserve(NULL, &shape, &error));
  headlight_engine_destroy(fresh);
}

int main(void) {
  workspace();
  backward_workspace();
  return check_result();
}
