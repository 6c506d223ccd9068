// The engine's shared library as a program in C opens it while it runs, and one call of it.
#pragma once

#include <dlfcn.h>
#include <headlight/headlight.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kValues = 1 * 33 * 2 * 8 };

static void require(int holds, const char* what) {
  if (holds) return;
  const char* const error = dlerror();
  fprintf(stderr, "%s does not hold%s%s\n", what, error != NULL ? ": " : "", error != NULL ? error : "");
  exit(EXIT_FAILURE);
}

#define REQUIRE(condition) require((condition) != 0, #condition)

struct library {
  void* handle;
  headlight_status (*create)(const headlight_engine_options*, headlight_engine**, headlight_error*);
  void (*destroy)(headlight_engine*);
  headlight_status (*attention)(headlight_engine*, const headlight_tensor*, const headlight_tensor*,
                                const headlight_tensor*, const headlight_tensor*, const headlight_attention_options*,
                                headlight_error*);
};

// Copies the address of a function, which ISO C has no conversion for.
static void find_function(void* handle, const char* name, void* function) {
  void* const address = dlsym(handle, name);
  REQUIRE(address != NULL);
  memcpy(function, &address, sizeof address);
}

static struct library open_library(const char* path) {
  struct library library = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  REQUIRE(library.handle != NULL);
  find_function(library.handle, "headlight_engine_create", &library.create);
  find_function(library.handle, "headlight_engine_destroy", &library.destroy);
  find_function(library.handle, "headlight_attention", &library.attention);
  return library;
}

static headlight_engine* make_engine(const struct library* library, int32_t threads) {
  headlight_engine_options options = {.struct_size = sizeof options, .threads = threads};
  headlight_engine* engine = NULL;
  REQUIRE(library->create(&options, &engine, NULL) == HEADLIGHT_OK);
  return engine;
}

// Attention of 33 rows to themselves, two heads of 8; and a call that is refused, which throws and catches inside.
static void attend(const struct library* library, headlight_engine* engine, float out[kValues]) {
  float x[kValues];
  for (int n = 0; n < kValues; ++n) x[n] = (float)(n % 17) / 8.0f - 1.0f;
  const int64_t shape[] = {1, 33, 2, 8};
  const headlight_tensor in = {.data = x, .rank = 4, .shape = shape}, to = {.data = out, .rank = 4, .shape = shape};
  headlight_error error;
  REQUIRE(library->attention(engine, &in, &in, &in, &to, NULL, &error) == HEADLIGHT_OK);
  REQUIRE(library->attention(engine, &in, &in, NULL, &to, NULL, &error) == HEADLIGHT_INVALID_ARGUMENT);
}
