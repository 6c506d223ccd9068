// Attention over the ranks of an MPI communicator, from C: what headlight/mpi.h says, for the library headlight_mpi.
// Not a part of headlight/headlight.h, for it needs mpi.h.
#pragma once

#include <mpi.h>

#include "headlight/c/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// The ranks that compute together. All of them make one from the same communicator, after MPI_Init_thread(), and
// destroy it before MPI_Finalize(). A rank that gives no sign of life for so many milliseconds (0: 60 s) ends every
// call of the group. Functions of a group fail on all ranks together, wrong arguments of one rank included, with
// HEADLIGHT_SYSTEM_ERROR and a message that begins with "rank N: ", whose fault it was. Only a rank that gives no group
// (a null pointer) fails by itself, with HEADLIGHT_INVALID_ARGUMENT, and the others wait for it until the timeout.
typedef struct headlight_mpi_group headlight_mpi_group;
HEADLIGHT_API headlight_status headlight_mpi_group_create(MPI_Comm communicator, int64_t timeout_milliseconds,
                                                          headlight_mpi_group** group, headlight_error* error);
HEADLIGHT_API void headlight_mpi_group_destroy(headlight_mpi_group* group);

// How a call is spread; all ranks give the same. NULL: all of it chosen.
typedef struct headlight_mpi_spread {
  size_t struct_size;
  int64_t block;            // rows that lie together on a rank, a multiple of 64; 0: chosen
  double flops_per_second;  // of a rank, for what is chosen; 0: 1e11
  double bytes_per_second;  // that leave it, or come; 0: 1e9
  int32_t head_ranks;       // ranks that share out the heads, 1: the sequence alone; 0: chosen
  int32_t reserved;         // 0
  double bytes_per_number;  // of keys and values that travel; 0: 4
} headlight_mpi_spread;

// Rows (or keys) first … first + count − 1 of the whole sequence.
typedef struct headlight_mpi_run {
  int64_t first;  // the first of them
  int64_t count;  // how many
} headlight_mpi_run;

// What a rank holds. Set struct_size, queries, keys and their rooms; then counts are filled in, and as many runs as
// there is room for: asked without room first, the counts say how much is needed.
typedef struct headlight_mpi_plan {
  size_t struct_size;
  headlight_mpi_run* queries;  // ascending; NULL: not wanted
  headlight_mpi_run* keys;     // likewise
  int64_t query_room;          // runs that there is room for
  int64_t key_room;            // the same of keys
  // Filled in: how many runs there are, and rows in them.
  int64_t query_runs;
  int64_t key_runs;
  int64_t query_rows;
  int64_t key_rows;
  int64_t block;
  int32_t ring;
  int32_t head_ranks;
} headlight_mpi_plan;

// Of `rank` of `size` ranks: a function of its arguments alone. options may be NULL.
HEADLIGHT_API headlight_status headlight_mpi_plan_call(const headlight_attention_shape* whole,
                                                       const headlight_attention_options* options, int32_t rank,
                                                       int32_t size, const headlight_mpi_spread* spread,
                                                       headlight_mpi_plan* plan, headlight_error* error);

// headlight_attention of the whole: tensors, of any type that headlight_attention() takes, options' log_sum_exp,
// key_scales and value_scales are the rank's shares, whole and all other options speak of the whole call. The bits are
// those of one process.
HEADLIGHT_API headlight_status headlight_mpi_attention(headlight_mpi_group* group, headlight_engine* engine,
                                                       const headlight_attention_shape* whole,
                                                       const headlight_tensor* query, const headlight_tensor* key,
                                                       const headlight_tensor* value, const headlight_tensor* out,
                                                       const headlight_attention_options* options,
                                                       const headlight_mpi_spread* spread, headlight_error* error);

// headlight_attention_backward likewise. Of the gradients query, key and value may be asked for, by all ranks alike;
// accumulate, bias and sinks are refused.
HEADLIGHT_API headlight_status headlight_mpi_attention_backward(
    headlight_mpi_group* group, headlight_engine* engine, const headlight_attention_shape* whole,
    const headlight_tensor* query, const headlight_tensor* key, const headlight_tensor* value,
    const headlight_tensor* out, const headlight_tensor* log_sum_exp, const headlight_tensor* out_gradient,
    const headlight_attention_gradients* gradients, const headlight_attention_options* options,
    const headlight_mpi_spread* spread, headlight_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
