// The engine from C: the machine, options and their sizes, statuses, somebody else's threads.
#define _GNU_SOURCE  // pthread_setattr_default_np
#include <pthread.h>
#include <stddef.h>

#include "check.h"

static void machine(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", HEADLIGHT_VERSION_MAJOR, HEADLIGHT_VERSION_MINOR,
           HEADLIGHT_VERSION_PATCH);
  CHECK(strcmp(headlight_version(), version) == 0);
  CHECK(strcmp(headlight_simd_library(), "highway") == 0 || strcmp(headlight_simd_library(), "xsimd") == 0);

  size_t count = 0;
  WORKS(headlight_available_isas(NULL, 0, &count, &error));
  CHECK(count >= 1 && count <= 4);
  headlight_isa isas[8] = {0};
  WORKS(headlight_available_isas(isas, 8, &count, &error));
  CHECK(isas[0] == HEADLIGHT_ISA_SCALAR && isas[count] == 0);
  for (size_t n = 0; n < count; ++n) {
    CHECK(headlight_isa_from_name(headlight_isa_name(isas[n])) == isas[n]);
    headlight_engine_options options = {.struct_size = sizeof options, .threads = 1, .isa = isas[n]};
    headlight_engine* engine = NULL;
    WORKS(headlight_engine_create(&options, &engine, &error));
    CHECK(headlight_engine_isa(engine) == isas[n]);
    headlight_engine_destroy(engine);
  }
  REFUSED("count", headlight_available_isas(isas, 8, NULL, &error));
  REFUSED("isas", headlight_available_isas(NULL, 8, &count, &error));
  headlight_type types[8] = {0};
  WORKS(headlight_available_types(types, 8, &count, &error));
  CHECK(count >= 1 && count <= 5 && types[0] == HEADLIGHT_FLOAT32);
  REFUSED("types", headlight_available_types(NULL, 8, &count, &error));
  CHECK(strcmp(headlight_isa_name(HEADLIGHT_ISA_NEON), "neon") == 0);
  CHECK(strcmp(headlight_isa_name(HEADLIGHT_ISA_BEST), "") == 0 && strcmp(headlight_isa_name(99), "") == 0);
  CHECK(headlight_isa_from_name("mmx") == HEADLIGHT_ISA_BEST && headlight_isa_from_name(NULL) == HEADLIGHT_ISA_BEST);

  headlight_system system;
  memset(&system, 0xFF, sizeof system);
  system.struct_size = sizeof system;
  WORKS(headlight_system_info(&system, &error));
  CHECK(system.struct_size == sizeof system && system.cores >= 1 && system.l1_data_bytes >= 0);
  CHECK(strstr(system.compiler, "++") != NULL && memchr(system.cpu_name, 0, sizeof system.cpu_name) != NULL);
  // A caller of an older version gets as much as its struct holds.
  memset(&system, 0xFF, sizeof system);
  system.struct_size = offsetof(headlight_system, l3_bytes);
  WORKS(headlight_system_info(&system, &error));
  CHECK(system.l2_bytes >= 0 && system.l3_bytes == -1 && system.cores == -1);
  system.struct_size = 0;
  REFUSED("struct_size", headlight_system_info(&system, &error));
  system.struct_size = offsetof(headlight_system, l3_bytes) + 4;
  REFUSED("struct_size", headlight_system_info(&system, &error));
  REFUSED("system", headlight_system_info(NULL, &error));
}

static void statuses(void) {
  CHECK(strcmp(headlight_status_name(HEADLIGHT_OK), "ok") == 0);
  CHECK(strcmp(headlight_status_name(HEADLIGHT_INVALID_ARGUMENT), "invalid argument") == 0);
  CHECK(strcmp(headlight_status_name(HEADLIGHT_OUT_OF_MEMORY), "out of memory") == 0);
  CHECK(strcmp(headlight_status_name(HEADLIGHT_SYSTEM_ERROR), "system error") == 0);
  CHECK(strcmp(headlight_status_name(HEADLIGHT_FILE_ERROR), "file error") == 0);
  CHECK(strcmp(headlight_status_name(HEADLIGHT_INTERNAL_ERROR), "internal error") == 0);
  CHECK(strcmp(headlight_status_name(6), "") == 0 && strcmp(headlight_status_name(-1), "") == 0);
  // The numbers are part of the interface.
  CHECK(HEADLIGHT_OK == 0 && HEADLIGHT_INVALID_ARGUMENT == 1 && HEADLIGHT_OUT_OF_MEMORY == 2);
  CHECK(HEADLIGHT_SYSTEM_ERROR == 3 && HEADLIGHT_FILE_ERROR == 4 && HEADLIGHT_INTERNAL_ERROR == 5);
}

static void options(void) {
  headlight_engine* engine = NULL;
  WORKS(headlight_engine_create(NULL, &engine, &error));
  CHECK(headlight_engine_threads(engine) >= 1 && headlight_engine_isa(engine) != HEADLIGHT_ISA_BEST);
  headlight_engine_destroy(engine);
  engine = make_engine(3);
  CHECK(headlight_engine_threads(engine) == 3 && headlight_engine_scratch_bytes(engine) == 0);
  headlight_engine_destroy(engine);

  const int32_t spin = 0, negative_spin = -1;
  headlight_engine_options given = {.struct_size = sizeof given, .threads = 2, .spin_microseconds = &spin};
  WORKS(headlight_engine_create(&given, &engine, &error));
  headlight_engine_destroy(engine);
  given.spin_microseconds = &negative_spin;
  REFUSED("spin_microseconds is -1", headlight_engine_create(&given, &engine, &error));
  CHECK(engine == NULL);
  given.spin_microseconds = NULL;
  given.threads = -1;
  REFUSED("threads is -1", headlight_engine_create(&given, &engine, &error));
  given.threads = 4097;
  REFUSED("threads is 4097", headlight_engine_create(&given, &engine, &error));
  given.threads = 1;
  const headlight_features unknown = 1u << 30, none = 0;
  given.features = &unknown;
  REFUSED("features is 1073741824", headlight_engine_create(&given, &engine, &error));
  given.features = &none;
  WORKS(headlight_engine_create(&given, &engine, &error));
  CHECK(headlight_engine_features(engine) == 0 && headlight_engine_features(NULL) == 0);
  headlight_engine_destroy(engine);
  given.features = NULL;
  WORKS(headlight_engine_create(&given, &engine, &error));
  const headlight_features used = headlight_engine_features(engine);
  CHECK((used & headlight_available_features(headlight_engine_isa(engine))) == used);
  headlight_engine_destroy(engine);
  CHECK(headlight_available_features(HEADLIGHT_ISA_SCALAR) == 0 && headlight_available_features(99) == 0);
  CHECK(strcmp(headlight_feature_name(HEADLIGHT_FEATURE_AVX512_BF16), "avx512_bf16") == 0);
  CHECK(strcmp(headlight_feature_name(HEADLIGHT_FEATURE_AVX512_VNNI), "avx512_vnni") == 0);
  CHECK(strcmp(headlight_feature_name(HEADLIGHT_FEATURE_AVX_VNNI), "avx_vnni") == 0);
  CHECK(strcmp(headlight_feature_name(HEADLIGHT_FEATURE_NEON_DOTPROD), "neon_dotprod") == 0);
  CHECK(strcmp(headlight_feature_name(HEADLIGHT_FEATURE_AMX_BF16), "amx_bf16") == 0);
  CHECK(strcmp(headlight_feature_name(HEADLIGHT_FEATURE_AMX_INT8), "amx_int8") == 0);
  CHECK(strcmp(headlight_feature_name(HEADLIGHT_FEATURE_NEON_I8MM), "neon_i8mm") == 0);
  CHECK(strcmp(headlight_feature_name(HEADLIGHT_FEATURE_NEON_BF16), "neon_bf16") == 0);
  CHECK(strcmp(headlight_feature_name(0), "") == 0 && strcmp(headlight_feature_name(unknown), "") == 0);
  given.numerics = HEADLIGHT_NUMERICS_FAST;
  WORKS(headlight_engine_create(&given, &engine, &error));
  CHECK(headlight_engine_numerics(engine) == HEADLIGHT_NUMERICS_FAST);
  CHECK(headlight_engine_numerics(NULL) == HEADLIGHT_NUMERICS_REPRODUCIBLE);
  const headlight_isa best = headlight_engine_isa(engine);
  const headlight_features without = headlight_available_features(best);
  const headlight_features with = headlight_available_features_with(best, HEADLIGHT_NUMERICS_FAST);
  CHECK(headlight_available_features_with(best, HEADLIGHT_NUMERICS_REPRODUCIBLE) == without);
  CHECK((with & without) == without && headlight_available_features_with(best, 2) == 0);
  headlight_engine_destroy(engine);
  given.numerics = 2;
  REFUSED("numerics is 2, expected 0 to 1", headlight_engine_create(&given, &engine, &error));
  given.numerics = HEADLIGHT_NUMERICS_REPRODUCIBLE;
  CHECK(strcmp(headlight_numerics_name(HEADLIGHT_NUMERICS_REPRODUCIBLE), "reproducible") == 0);
  CHECK(strcmp(headlight_numerics_name(HEADLIGHT_NUMERICS_FAST), "fast") == 0);
  CHECK(strcmp(headlight_numerics_name(2), "") == 0 && strcmp(headlight_numerics_name(-1), "") == 0);
  given.isa = 6;
  REFUSED("isa is 6", headlight_engine_create(&given, &engine, &error));
  given.isa = -1;
  REFUSED("isa is -1", headlight_engine_create(&given, &engine, &error));
#if defined(__x86_64__)
  given.isa = HEADLIGHT_ISA_NEON;
  REFUSED("isa is neon", headlight_engine_create(&given, &engine, &error));
#endif
  REFUSED("result", headlight_engine_create(NULL, NULL, &error));
  // Nobody has to ask for the message.
  CHECK(headlight_engine_create(&given, NULL, NULL) == HEADLIGHT_INVALID_ARGUMENT);

  headlight_engine_destroy(NULL);
  headlight_engine_release_scratch(NULL);
  CHECK(headlight_engine_threads(NULL) == 0 && headlight_engine_isa(NULL) == HEADLIGHT_ISA_BEST);
  CHECK(headlight_engine_scratch_bytes(NULL) == 0);
}

// Callers whose headers are older or newer than the library.
static void sizes(void) {
  headlight_engine* engine = NULL;
  struct {
    headlight_engine_options known;
    unsigned char later[64];
  } given;
  memset(&given, 0, sizeof given);

  // Older: fields past the size are the default, whatever lies there.
  const int32_t negative_spin = -1;
  given.known.threads = 1;
  given.known.spin_microseconds = &negative_spin;
  given.known.struct_size = offsetof(headlight_engine_options, spin_microseconds);
  WORKS(headlight_engine_create(&given.known, &engine, &error));
  CHECK(headlight_engine_threads(engine) == 1);
  headlight_engine_destroy(engine);
  given.known.isa = 99;
  given.known.struct_size = sizeof(size_t);
  WORKS(headlight_engine_create(&given.known, &engine, &error));
  headlight_engine_destroy(engine);

  // A struct that ends before the numerics, which came later.
  given.known.isa = HEADLIGHT_ISA_SCALAR;
  given.known.spin_microseconds = NULL;
  given.known.numerics = 99;
  given.known.struct_size = offsetof(headlight_engine_options, numerics);
  WORKS(headlight_engine_create(&given.known, &engine, &error));
  CHECK(headlight_engine_numerics(engine) == HEADLIGHT_NUMERICS_REPRODUCIBLE);
  headlight_engine_destroy(engine);
  given.known.numerics = HEADLIGHT_NUMERICS_REPRODUCIBLE;

  // Newer: taken while the unknown fields are zero.
  given.known.isa = HEADLIGHT_ISA_SCALAR;
  given.known.spin_microseconds = NULL;
  given.known.struct_size = sizeof given;
  WORKS(headlight_engine_create(&given.known, &engine, &error));
  headlight_engine_destroy(engine);
  given.later[63] = 1;
  REFUSED("no field", headlight_engine_create(&given.known, &engine, &error));

  // Forgotten, or never set.
  given.known.struct_size = 0;
  REFUSED("struct_size is 0", headlight_engine_create(&given.known, &engine, &error));
  given.known.struct_size = 7;
  REFUSED("struct_size is 7", headlight_engine_create(&given.known, &engine, &error));
  // Torn: half of a pointer is no field.
  given.known.struct_size = offsetof(headlight_engine_options, executor) + sizeof(void*) / 2;
  REFUSED("expected the size of the struct", headlight_engine_create(&given.known, &engine, &error));
  given.known.struct_size = SIZE_MAX;
  REFUSED("struct_size", headlight_engine_create(&given.known, &engine, &error));

  // A reserved field is one of a later version.
  const headlight_gemm_options options = {.struct_size = sizeof options, .reserved = 1};
  float number = 1, result = 0;
  const headlight_tensor in = TENSOR(&number, 1, 1), out = TENSOR(&result, 1, 1);
  engine = make_engine(1);
  REFUSED("options has a value at byte", headlight_gemm(engine, &in, &in, &out, &options, &error));
  headlight_engine_destroy(engine);
}

#if defined(__GLIBC__)
static void no_threads(void) {
  // No machine has a stack of 2⁴⁶ bytes: not even the first worker starts.
  pthread_attr_t before, large;
  CHECK(pthread_getattr_default_np(&before) == 0 && pthread_attr_init(&large) == 0);
  CHECK(pthread_attr_setstacksize(&large, (size_t)1 << 46) == 0 && pthread_setattr_default_np(&large) == 0);
  headlight_engine_options given = {.struct_size = sizeof given, .threads = 4};
  headlight_engine* engine = NULL;
  FAILS(HEADLIGHT_SYSTEM_ERROR, "cannot start worker", headlight_engine_create(&given, &engine, &error));
  CHECK(engine == NULL && pthread_setattr_default_np(&before) == 0);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&large);
}
#endif

// The smallest pool there is: it runs every task at once, on the caller's thread.
struct pool {
  int tasks;
  int waits;
};
static int pool_workers(void* context) {
  (void)context;
  return 2;
}
static bool pool_inside(void* context) {
  (void)context;
  return false;
}
static void* pool_run(void* context, int count, void (*task)(void* argument, int index), void* argument) {
  ((struct pool*)context)->tasks += count;
  for (int index = 0; index < count; ++index) task(argument, index);
  return context;
}
static void pool_wait(void* context, void* ticket) {
  if (context == ticket) ++((struct pool*)context)->waits;
}

static void executor(void) {
  enum { kRows = 3000, kColumns = 400 };
  struct pool pool = {0, 0};
  headlight_executor borrowed = {sizeof borrowed, &pool, pool_workers, pool_inside, pool_run, pool_wait};
  headlight_engine_options given = {.struct_size = sizeof given, .executor = &borrowed};
  headlight_engine* engine = NULL;
  WORKS(headlight_engine_create(&given, &engine, &error));
  CHECK(headlight_engine_threads(engine) == 2);
  float* x = calloc(kRows * kColumns, sizeof(float));
  headlight_tensor rows = TENSOR(x, kRows, kColumns);
  WORKS(headlight_softmax(engine, &rows, &rows, &error));
  CHECK(pool.tasks > 0 && pool.waits > 0);
  CHECK(fabsf(x[0] - 1.0f / kColumns) < 1e-8f && x[kRows * kColumns - 1] == x[0]);
  free(x);
  headlight_engine_destroy(engine);

  borrowed.wait = NULL;
  REFUSED("executor.wait", headlight_engine_create(&given, &engine, &error));
  borrowed.wait = pool_wait;
  borrowed.struct_size = 1;
  REFUSED("executor.struct_size is 1", headlight_engine_create(&given, &engine, &error));
}

int main(void) {
  machine();
  statuses();
  options();
  sizes();
  executor();
#if defined(__GLIBC__)
  no_threads();
#endif
  return check_result();
}
