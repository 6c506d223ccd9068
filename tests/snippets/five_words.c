// Five words look at themselves and at the words before them.
#include <headlight/headlight.h>
#include <stdio.h>

int main(void) {
  float query[5 * 4] = {0}, key[5 * 4] = {0}, value[5] = {0, 1, 2, 3, 4}, seen[5];
  const int64_t shape[] = {1, 5, 1, 4}, narrow[] = {1, 5, 1, 1};  // [batch, words, heads, width of a head]
  headlight_tensor q = {.data = query, .rank = 4, .shape = shape}, k = {.data = key, .rank = 4, .shape = shape};
  headlight_tensor v = {.data = value, .rank = 4, .shape = narrow}, out = {.data = seen, .rank = 4, .shape = narrow};

  headlight_error error;
  headlight_engine* engine;
  headlight_attention_options options = {.struct_size = sizeof options, .causal = HEADLIGHT_CAUSAL_TOP_LEFT};
  if (headlight_engine_create(NULL, &engine, &error) != HEADLIGHT_OK ||
      headlight_attention(engine, &q, &k, &v, &out, &options, &error) != HEADLIGHT_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  for (int word = 0; word < 5; ++word) printf("word %d sees %g on average\n", word, (double)seen[word]);
  headlight_engine_destroy(engine);
}
