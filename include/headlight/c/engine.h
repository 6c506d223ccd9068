// Part of headlight/headlight.h: statuses, tensors, the machine, the engine.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headlight/export.h"
#include "headlight/version.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a call returns: HEADLIGHT_OK, or what went wrong.
typedef int32_t headlight_status;
enum {
  HEADLIGHT_OK = 0,
  HEADLIGHT_INVALID_ARGUMENT = 1,  // the message names the argument, what it was and what was expected
  HEADLIGHT_OUT_OF_MEMORY = 2,
  HEADLIGHT_SYSTEM_ERROR = 3,   // a thread could not be started
  HEADLIGHT_FILE_ERROR = 4,     // a file could not be read, understood or written (models library)
  HEADLIGHT_INTERNAL_ERROR = 5  // a mistake of headlight's own
};

// Written by every call that gets one: HEADLIGHT_OK, "" and 0 after success. A message is UTF-8 and ends in a zero
// byte; a longer one is cut and ends in "…".
typedef struct headlight_error {
  headlight_status status;  // what the call returned
  char message[1012];       // one sentence
  uint64_t bytes;           // HEADLIGHT_OUT_OF_MEMORY: how many could not be had; 0 where that is not known
} headlight_error;

// "invalid argument"; "" for a number that is no status. Like all names that functions return, it is never freed.
HEADLIGHT_API const char* headlight_status_name(headlight_status status);

// Options with every field at its default: headlight_gemm_options options = HEADLIGHT_OPTIONS(headlight_gemm_options);
#ifdef __cplusplus
#define HEADLIGHT_OPTIONS(type)                 \
  ([] {                                         \
    type headlight_zeros = {};                  \
    headlight_zeros.struct_size = sizeof(type); \
    return headlight_zeros;                     \
  }())
#else
#define HEADLIGHT_OPTIONS(type) ((type){.struct_size = sizeof(type)})
#endif

// What the numbers of a tensor are stored as.
typedef int32_t headlight_type;
enum {
  HEADLIGHT_FLOAT32 = 0,
  HEADLIGHT_INT64 = 1,
  HEADLIGHT_UINT8 = 2,
  // float32's upper half: of packed matrices, of the products of layers, and of what headlight_attention() reads and
  // writes. A number is a uint16_t with its bits.
  HEADLIGHT_BFLOAT16 = 3,
  HEADLIGHT_INT8 = 4,  // of packed matrices, of the products of layers, and of keys and values with their scales
  // IEEE 754 binary16, likewise: of packed matrices, and of what headlight_attention() reads and writes.
  HEADLIGHT_FLOAT16 = 5,
  HEADLIGHT_INT4 = 6  // two to a byte: of packed matrices alone
};

// A tensor in the caller's memory: element (i0, i1, …) lies at data[i0·strides[0] + i1·strides[1] + …]. Strides count
// elements, not bytes; NULL: contiguous, C order. The last must be 1 unless said otherwise; inputs may have strides of
// 0 (broadcast). Inputs are never written to, though the pointer cannot say so. Where a tensor is optional, NULL in its
// place or as its data means "not given". Shape and strides are those of a DLPack tensor.
typedef struct headlight_tensor {
  // The first element, what it is stored as, and the number of axes.
  void* data;
  headlight_type type;
  int32_t rank;
  const int64_t* shape;    // [rank]
  const int64_t* strides;  // [rank], or NULL
} headlight_tensor;

// Lengths, offsets, row numbers, ids. All zero: not given.
typedef struct headlight_indices {
  // The numbers, and how many there are.
  const int64_t* data;
  int64_t count;
} headlight_indices;

// "0.1.0" of the library that runs; HEADLIGHT_VERSION_MAJOR … are those of the header.
HEADLIGHT_API const char* headlight_version(void);
// "highway" or "xsimd": the library behind the kernels.
HEADLIGHT_API const char* headlight_simd_library(void);

// An instruction set that the kernels are compiled for. HEADLIGHT_ISA_SCALAR runs everywhere.
typedef int32_t headlight_isa;
enum {
  HEADLIGHT_ISA_BEST = 0,  // in options: HEADLIGHT_ISA of the environment if set, else the best that the CPU has
  HEADLIGHT_ISA_SCALAR = 1,
  HEADLIGHT_ISA_SSE4 = 2,
  HEADLIGHT_ISA_AVX2 = 3,
  HEADLIGHT_ISA_AVX512 = 4,
  HEADLIGHT_ISA_NEON = 5
};
// "avx2"; "" for what is no instruction set. And back, in letters of any case: HEADLIGHT_ISA_BEST for what is no such
// name.
HEADLIGHT_API const char* headlight_isa_name(headlight_isa isa);
HEADLIGHT_API headlight_isa headlight_isa_from_name(const char* name);
// The sets that this build holds and this CPU runs, worst first: *count is how many, and the first `capacity` of them
// are written to isas (NULL with a capacity of 0).
HEADLIGHT_API headlight_status headlight_available_isas(headlight_isa* isas, size_t capacity, size_t* count,
                                                        headlight_error* error);
// The types of numbers that products and attention of this build compute in, likewise, HEADLIGHT_FLOAT32 first. Asked
// for another, they are refused.
HEADLIGHT_API headlight_status headlight_available_types(headlight_type* types, size_t capacity, size_t* count,
                                                         headlight_error* error);

// Instructions that some CPUs have beyond a set's own, as bits. Kernels that gain by one take the place of the set's.
typedef uint32_t headlight_features;
enum {
  // AVX512-BF16, of avx512: products of bfloat16 numbers. What is below 2⁻¹²⁶ counts as 0 in them. On Intel's CPUs with
  // AMX, where it is slow, an engine uses it only if `features` names it.
  HEADLIGHT_FEATURE_AVX512_BF16 = 1,
  // AVX512-VNNI, of avx512, AVX-VNNI, of avx2, and DotProd, of neon: products of 8-bit integers, exactly.
  HEADLIGHT_FEATURE_AVX512_VNNI = 2,
  HEADLIGHT_FEATURE_AVX_VNNI = 4,
  HEADLIGHT_FEATURE_NEON_DOTPROD = 8,
  // I8MM, of neon: products of 8-bit integers, too, two rows by two columns at a time.
  HEADLIGHT_FEATURE_NEON_I8MM = 16,
  // BF16, of neon, and wanting HEADLIGHT_NUMERICS_FAST: products of matrices of bfloat16 numbers, rounded in another
  // way than the set's, within their bound. What is below 2⁻¹²⁶ counts as 0 in them.
  HEADLIGHT_FEATURE_NEON_BF16 = 32,
  // AMX-BF16 and AMX-INT8, of avx512, on Linux alone: products of matrices, and attention over bfloat16, by tile
  // registers, for which the system is asked, for all of the process and for good. headlight/engine.h says more.
  HEADLIGHT_FEATURE_AMX_BF16 = 64,
  HEADLIGHT_FEATURE_AMX_INT8 = 128
};
// "avx512_bf16" of a single bit; "" for what is none.
HEADLIGHT_API const char* headlight_feature_name(headlight_features feature);
// What a result's bits may depend on beside the build and the instructions in use. Never: threads, the run, the rest
// of the batch.
typedef int32_t headlight_numerics;
enum {
  HEADLIGHT_NUMERICS_REPRODUCIBLE = 0,  // nothing: few rows at a time give the bits of many
  // The route that a call takes, too, such as how many rows it has: features may be used that round in an order of
  // their own.
  HEADLIGHT_NUMERICS_FAST = 1
};
// "fast"; "" for what is none.
HEADLIGHT_API const char* headlight_numerics_name(headlight_numerics numerics);

// Those beyond a set that this build holds, this CPU has and these numerics (reproducible, where none are given) allow;
// 0 for what is no instruction set, or none of the numerics.
HEADLIGHT_API headlight_features headlight_available_features(headlight_isa isa);
HEADLIGHT_API headlight_features headlight_available_features_with(headlight_isa isa, headlight_numerics numerics);

// For people who report figures. Set struct_size; the rest is written, as much of it as that holds.
typedef struct headlight_system {
  size_t struct_size;
  int64_t l1_data_bytes;  // of one instance of each data cache; 0: none
  // The same.
  int64_t l2_bytes;
  int64_t l3_bytes;
  int64_t cores;       // that this process may use: affinity mask and control-group quota
  char compiler[64];   // that built the library: "g++ 12.2.0"
  char cpu_name[128];  // as the CPU calls itself
} headlight_system;
HEADLIGHT_API headlight_status headlight_system_info(headlight_system* system, headlight_error* error);

// Which instruction set computes, on how many threads, with which scratch memory. Workers serve one call at a time; a
// call that finds them busy computes on its own thread. The bits of a result depend on neither.
typedef struct headlight_engine headlight_engine;

// The caller's own thread pool. All four functions are needed, must not throw or jump, and may be called from several
// threads at once when the engine is.
typedef struct headlight_executor {
  size_t struct_size;
  void* context;  // the first argument of each
  // How many tasks can make progress at once (≥ 1), the calling thread included.
  int (*worker_count)(void* context);
  // Whether the calling thread is one of the pool's workers: the engine then computes inline.
  bool (*inside_worker)(void* context);
  // Starts task(argument, 0) … task(argument, count − 1), in any order, and returns a ticket; may run some before it
  // returns.
  void* (*run)(void* context, int count, void (*task)(void* argument, int index), void* argument);
  // Returns when all tasks of that ticket have ended; may run some of them on the calling thread.
  void (*wait)(void* context, void* ticket);
} headlight_executor;

// What headlight_engine_create may be told; all zero but the size is the default.
typedef struct headlight_engine_options {
  size_t struct_size;
  // Threads that compute, the caller included: 1 … 4096. 0: HEADLIGHT_NUM_THREADS of the environment if set, else what
  // affinity mask and control-group quota grant.
  int32_t threads;
  headlight_isa isa;  // which instruction set; HEADLIGHT_ISA_BEST: the best
  // How long an idle worker, or a caller who waits for workers, spins before it sleeps, in microseconds. NULL: 50.
  const int32_t* spin_microseconds;
  // Borrow this pool instead of starting workers (`threads` then only lowers its worker count). Copied; its context
  // must outlive the engine. NULL: none.
  const headlight_executor* executor;
  // These features and no others. NULL: all beyond the instruction set that the CPU has, `numerics` allows and make it
  // faster.
  const headlight_features* features;
  headlight_numerics numerics;
  int32_t reserved;  // 0
} headlight_engine_options;

// Every function that makes an object writes it to its last argument but one, or NULL there when it fails. The object
// is freed by the function of the same name that ends in _destroy, which lets NULL pass.
HEADLIGHT_API headlight_status headlight_engine_create(const headlight_engine_options* options,
                                                       headlight_engine** engine, headlight_error* error);
HEADLIGHT_API void headlight_engine_destroy(headlight_engine* engine);
HEADLIGHT_API int32_t headlight_engine_threads(const headlight_engine* engine);
HEADLIGHT_API headlight_isa headlight_engine_isa(const headlight_engine* engine);
HEADLIGHT_API headlight_features headlight_engine_features(const headlight_engine* engine);
HEADLIGHT_API headlight_numerics headlight_engine_numerics(const headlight_engine* engine);
// Bytes of scratch memory held now, and how to give back what is idle.
HEADLIGHT_API size_t headlight_engine_scratch_bytes(const headlight_engine* engine);
HEADLIGHT_API void headlight_engine_release_scratch(headlight_engine* engine);

#ifdef __cplusplus
}  // extern "C"
#endif
