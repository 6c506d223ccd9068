// Attention over the ranks of an MPI communicator, from C: what headlight/mpi.h says, for the library headlight_mpi.
// Not a part of headlight/headlight.h, for it needs mpi.h.
#pragma once

#include <mpi.h>

#include "headlight/c/attention.h"
#include "headlight/c/optimizer.h"

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
  double bytes_per_number;  // of keys and values that are sent; 0: 4
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

// headlight_attention_backward likewise, options' log_sum_exp_gradient being a share; types are the same on all ranks.
// Of the gradients query, key, value and sinks may be asked for, by all ranks alike, the last as a whole on each of
// them; accumulate and bias are refused.
HEADLIGHT_API headlight_status headlight_mpi_attention_backward(
    headlight_mpi_group* group, headlight_engine* engine, const headlight_attention_shape* whole,
    const headlight_tensor* query, const headlight_tensor* key, const headlight_tensor* value,
    const headlight_tensor* out, const headlight_tensor* log_sum_exp, const headlight_tensor* out_gradient,
    const headlight_attention_gradients* gradients, const headlight_attention_options* options,
    const headlight_mpi_spread* spread, headlight_error* error);

// AdamW on batches whose shards are spread over the ranks, as mpi::ShardedAdamW: parameters and moments have the bits
// of one process, whatever the number of ranks. Layers, names and options are those of headlight_adamw_create(); all
// ranks give the same, with the same weights. Layers and group outlive it.
typedef struct headlight_mpi_adamw headlight_mpi_adamw;
HEADLIGHT_API headlight_status headlight_mpi_adamw_create(headlight_mpi_group* group, headlight_layer* const* layers,
                                                          size_t count, int64_t shards,
                                                          const headlight_adamw_options* options,
                                                          headlight_mpi_adamw** adamw, headlight_error* error);
HEADLIGHT_API void headlight_mpi_adamw_destroy(headlight_mpi_adamw* adamw);
// The shards of every batch that this rank computes; none where there are more ranks than shards.
HEADLIGHT_API headlight_mpi_run headlight_mpi_adamw_shards(const headlight_mpi_adamw* adamw);
// Before the first of them.
HEADLIGHT_API void headlight_mpi_adamw_zero_gradients(headlight_mpi_adamw* adamw);
// After the way back of each of them, on this rank alone: puts the gradients aside and sets them to 0.
HEADLIGHT_API headlight_status headlight_mpi_adamw_take(headlight_mpi_adamw* adamw, headlight_engine* engine,
                                                        headlight_error* error);
// All ranks together, each with all of its shards taken. The report may be NULL, and is the same on all of them.
HEADLIGHT_API headlight_status headlight_mpi_adamw_step(headlight_mpi_adamw* adamw, headlight_engine* engine,
                                                        const headlight_step_options* options,
                                                        headlight_step_report* report, headlight_error* error);
HEADLIGHT_API int64_t headlight_mpi_adamw_steps(const headlight_mpi_adamw* adamw);
HEADLIGHT_API headlight_status headlight_mpi_adamw_set_steps(headlight_mpi_adamw* adamw, int64_t steps,
                                                             headlight_error* error);
// What this rank keeps, to read and to write: elements first … first + count − 1 of the moment of that name
// ("first_moment.NAME" or "second_moment.NAME").
HEADLIGHT_API int64_t headlight_mpi_adamw_moment_count(const headlight_mpi_adamw* adamw);
HEADLIGHT_API headlight_status headlight_mpi_adamw_moment(headlight_mpi_adamw* adamw, int64_t index, const char** name,
                                                          int64_t* first, int64_t* count, float** values,
                                                          headlight_error* error);
// Brings the moments of all ranks together on `root`, which gives room for each that headlight_optimizer_state() would
// list, in its order; the others give NULL and 0.
HEADLIGHT_API headlight_status headlight_mpi_adamw_collect_moments(headlight_mpi_adamw* adamw, int32_t root,
                                                                   float* const* whole, int64_t count,
                                                                   headlight_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif
