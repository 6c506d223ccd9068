// What the C programs of this folder check with, and the numbers they compute on. Each program is one translation unit.
#pragma once

#include <headlight/headlight.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
static headlight_error error;

static inline void check(int holds, const char* what, const char* file, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s (last message: %s)\n", file, line, what, error.message);
}

#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)

// A call that succeeds, and says so to whoever asked.
#define WORKS(call) \
  CHECK((call) == HEADLIGHT_OK && error.status == HEADLIGHT_OK && error.message[0] == '\0' && error.bytes == 0)

// A call that fails with that status and a message that holds `part`.
#define FAILS(expected, part, call) \
  CHECK((call) == (expected) && error.status == (expected) && strstr(error.message, (part)) != NULL)
#define REFUSED(part, call) FAILS(HEADLIGHT_INVALID_ARGUMENT, part, call)

// Shapes and strides on the spot.
#define INTS(...) ((const int64_t[]){__VA_ARGS__})
#define RANK_OF(...) ((int32_t)(sizeof INTS(__VA_ARGS__) / sizeof(int64_t)))
// A contiguous tensor of floats: TENSOR(memory, 2, 3).
#define TENSOR(memory, ...) \
  ((headlight_tensor){.data = (memory), .rank = RANK_OF(__VA_ARGS__), .shape = INTS(__VA_ARGS__)})

// The same numbers on every machine, in [-1, 1).
static inline void fill(float* values, size_t count, uint32_t seed) {
  uint32_t state = seed * 2654435761u + 1u;
  for (size_t n = 0; n < count; ++n) {
    state = state * 1664525u + 1013904223u;
    values[n] = (float)(int32_t)(state >> 8) * 0x1p-23f - 1.0f;
  }
}

// The largest difference; NaN counts as infinite.
static inline double worst(const float* values, const double* expected, size_t count) {
  double most = 0;
  for (size_t n = 0; n < count; ++n) {
    const double difference = fabs((double)values[n] - expected[n]);
    if (!(difference <= most)) most = difference == difference ? difference : HUGE_VAL;
  }
  return most;
}

static inline headlight_engine* make_engine(int32_t threads) {
  headlight_engine_options options = {.struct_size = sizeof options, .threads = threads};
  headlight_engine* engine = NULL;
  WORKS(headlight_engine_create(&options, &engine, &error));
  return engine;
}

static inline int check_result(void) {
  if (failures != 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
