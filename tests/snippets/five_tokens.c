// Causal attention over five tokens: each attends to itself and to the tokens before it.
#include <headlight/headlight.h>
#include <stdio.h>

int main(void) {
  float query[5 * 4] = {0}, key[5 * 4] = {0}, value[5] = {0, 1, 2, 3, 4}, result[5];
  const int64_t shape[] = {1, 5, 1, 4}, value_shape[] = {1, 5, 1, 1};  // [batch, length, heads, head_dim]
  headlight_tensor q = {.data = query, .rank = 4, .shape = shape}, k = {.data = key, .rank = 4, .shape = shape};
  headlight_tensor v = {.data = value, .rank = 4, .shape = value_shape};
  headlight_tensor out = {.data = result, .rank = 4, .shape = value_shape};

  headlight_error error;
  headlight_engine* engine;
  headlight_attention_options options = {.struct_size = sizeof options, .causal = HEADLIGHT_CAUSAL_TOP_LEFT};
  if (headlight_engine_create(NULL, &engine, &error) != HEADLIGHT_OK ||
      headlight_attention(engine, &q, &k, &v, &out, &options, &error) != HEADLIGHT_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  for (int token = 0; token < 5; ++token) printf("token %d: %g\n", token, (double)result[token]);
  headlight_engine_destroy(engine);
}
