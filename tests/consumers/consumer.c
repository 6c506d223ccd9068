/* A program of somebody else's, in C99, that knows nothing of C++. */
#include <headlight/headlight.h>
#include <stdio.h>

#ifdef CONSUMER_HAS_MODELS
#include <headlight/models/headlight_models.h>
#endif

int main(void) {
  headlight_error error;
  headlight_engine_options options = HEADLIGHT_OPTIONS(headlight_engine_options);
  options.threads = 1;
  headlight_engine* engine = NULL;
  if (headlight_engine_create(&options, &engine, &error) != HEADLIGHT_OK) return 1;

  /* Queries of zeros look at all keys alike, so they see the mean of the values. */
  float zeros[8] = {0}, values[2] = {1.0f, 2.0f}, means[2] = {0};
  const int64_t shape[] = {1, 2, 1, 4}, narrow[] = {1, 2, 1, 1};
  const headlight_tensor query = {.data = zeros, .rank = 4, .shape = shape};
  const headlight_tensor value = {.data = values, .rank = 4, .shape = narrow};
  const headlight_tensor out = {.data = means, .rank = 4, .shape = narrow};
  if (headlight_attention(engine, &query, &query, &value, &out, NULL, &error) != HEADLIGHT_OK) return 1;
  if (means[0] != 1.5f || means[1] != 1.5f) return 1;
  printf("headlight %s computes with %s\n", headlight_version(), headlight_isa_name(headlight_engine_isa(engine)));
  headlight_engine_destroy(engine);

#ifdef CONSUMER_HAS_MODELS
  headlight_encoder* encoder = NULL;
  if (headlight_encoder_load("no such folder", &encoder, &error) != HEADLIGHT_FILE_ERROR) return 1;
#endif
  return 0;
}
