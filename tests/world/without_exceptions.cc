// A caller in C++ that knows neither exceptions nor type information (-fno-exceptions -fno-rtti) and uses the C
// interface: what succeeds, what is refused, and what the system refuses come back as statuses.
#include <headlight/headlight.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#ifdef HEADLIGHT_WORLD_MODELS
#include <headlight/models/headlight_models.h>
#endif

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "to be compiled with -fno-exceptions -fno-rtti"
#endif

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "%s does not hold\n", what);
}

void attend(headlight_engine* engine) {
  // Queries of zeros look at all keys alike, so they see the mean of the values.
  float zeros[8] = {}, values[2] = {1.0f, 2.0f}, means[2] = {};
  const std::int64_t shape[] = {1, 2, 1, 4}, narrow[] = {1, 2, 1, 1}, short_shape[] = {1, 1, 1, 4};
  headlight_tensor query = {}, key = {}, value = {}, out = {};
  query.data = zeros;
  query.rank = 4;
  query.shape = shape;
  key = query;
  value.data = values;
  value.rank = 4;
  value.shape = narrow;
  out = value;
  out.data = means;
  headlight_error error;
  check(headlight_attention(engine, &query, &key, &value, &out, nullptr, &error) == HEADLIGHT_OK, "attention");
  check(means[0] == 1.5f && means[1] == 1.5f, "the mean of the values");
  key.shape = short_shape;
  check(headlight_attention(engine, &query, &key, &value, &out, nullptr, &error) == HEADLIGHT_INVALID_ARGUMENT,
        "a refused call");
  check(std::strstr(error.message, "key") != nullptr, "an error that names the argument");
}

}  // namespace

int main() {
  headlight_error error;
  headlight_engine_options options = HEADLIGHT_OPTIONS(headlight_engine_options);
  options.threads = 2;
  headlight_engine* engine = nullptr;
  check(headlight_engine_create(&options, &engine, &error) == HEADLIGHT_OK, "an engine");
  attend(engine);
  headlight_engine_destroy(engine);

  options.threads = -1;
  check(headlight_engine_create(&options, &engine, &error) == HEADLIGHT_INVALID_ARGUMENT, "a refused engine");
  check(engine == nullptr && error.message[0] != '\0', "no engine, and a message");

#ifdef HEADLIGHT_WORLD_MODELS
  headlight_encoder* encoder = nullptr;
  check(headlight_encoder_load("no such folder", &encoder, &error) == HEADLIGHT_FILE_ERROR,
        "a model that is not there");
#endif
  return failures == 0 ? 0 : 1;
}
