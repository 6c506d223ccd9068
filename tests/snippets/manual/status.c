// From C: scratch memory taken in advance, a cache of which some rows are used, and a mistake that is returned.
#include <headlight/headlight.h>
#include <stdio.h>

enum { CAPACITY = 16, LENGTH = 3, HEADS = 2, WIDTH = 4 };

int main(void) {
  // For each head, CAPACITY rows of WIDTH numbers; LENGTH of them are in use.
  float query[HEADS * WIDTH] = {0}, keys[HEADS * CAPACITY * WIDTH] = {0}, values[HEADS * CAPACITY * WIDTH] = {0};
  float out[HEADS * WIDTH];
  for (int head = 0; head < HEADS; ++head) {
    for (int row = 0; row < CAPACITY; ++row) values[(head * CAPACITY + row) * WIDTH] = (float)(row + 10 * head);
  }
  const int64_t one_row[] = {1, 1, HEADS, WIDTH}, some_rows[] = {1, LENGTH, HEADS, WIDTH};
  const int64_t strides[] = {HEADS * CAPACITY * WIDTH, WIDTH, CAPACITY * WIDTH, 1};
  headlight_tensor q = {.data = query, .rank = 4, .shape = one_row}, o = {.data = out, .rank = 4, .shape = one_row};
  headlight_tensor k = {.data = keys, .rank = 4, .shape = some_rows, .strides = strides};
  headlight_tensor v = {.data = values, .rank = 4, .shape = some_rows, .strides = strides};

  headlight_error error;
  headlight_engine_options options = {.struct_size = sizeof options, .threads = 1};
  headlight_engine* engine;
  if (headlight_engine_create(&options, &engine, &error) != HEADLIGHT_OK) return 1;
  headlight_attention_shape shape = {.struct_size = sizeof shape,
                                     .query_length = 1,
                                     .key_length = LENGTH,
                                     .query_heads = HEADS,
                                     .key_value_heads = HEADS,
                                     .head_dim = WIDTH,
                                     .value_dim = WIDTH};
  int good = headlight_attention_reserve(engine, &shape, &error) == HEADLIGHT_OK;
  good = good && headlight_attention(engine, &q, &k, &v, &o, NULL, &error) == HEADLIGHT_OK;
  good = good && out[0] == 1 && out[WIDTH] == 11;  // the means of 0, 1, 2 and of 10, 11, 12

  k.rank = 3;
  good = good && headlight_attention(engine, &q, &k, &v, &o, NULL, &error) == HEADLIGHT_INVALID_ARGUMENT;
  printf("%s\n", error.message);
  headlight_engine_destroy(engine);
  return good ? 0 : 1;
}
