/* C over ranks: the bits of headlight_attention and headlight_attention_backward in one process, and an error that all
   ranks have. Ends with 0 when everything is as it should be. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "c_ranks.h"

enum { kLength = 500, kHeads = 4, kKeyHeads = 2, kDim = 16, kMostRuns = 64 };

static float* numbers(int64_t count, unsigned seed) {
  float* all = malloc((size_t)count * sizeof(float) + 1);
  for (int64_t n = 0; n < count; ++n) {
    seed = seed * 1664525u + 1013904223u;
    all[n] = (float)(seed >> 8) * (1.0f / 8388608) - 1;
  }
  return all;
}

typedef struct array {
  int64_t shape[4];
  headlight_tensor tensor;
} array;

static void make(array* to, int64_t rows, int64_t heads, unsigned seed) {
  const int64_t shape[4] = {1, rows, heads, kDim};
  memcpy(to->shape, shape, sizeof shape);
  to->tensor = (headlight_tensor){.data = numbers(rows * heads * kDim, seed), .type = HEADLIGHT_FLOAT32, .rank = 4};
  to->tensor.shape = to->shape;
}

/* Rows of the runs, one after another. */
static void take(array* share, const array* whole, const headlight_mpi_run* runs, int64_t count, int64_t rows) {
  const int64_t row = whole->shape[2] * kDim;
  make(share, rows, whole->shape[2], 1);
  float* to = share->tensor.data;
  for (int64_t n = 0; n < count; ++n, to += runs[n - 1].count * row) {
    memcpy(to, (const float*)whole->tensor.data + runs[n].first * row, (size_t)(runs[n].count * row) * sizeof(float));
  }
}

static int same(const array* share, const array* whole, const headlight_mpi_run* runs, int64_t count) {
  array expected;
  take(&expected, whole, runs, count, share->shape[1]);
  return memcmp(expected.tensor.data, share->tensor.data,
                (size_t)(share->shape[1] * share->shape[2] * kDim) * sizeof(float)) == 0;
}

/* The upper halves of its floats. */
static headlight_tensor in_bfloat16(const array* floats) {
  headlight_tensor tensor = floats->tensor;
  const int64_t count = floats->shape[1] * floats->shape[2] * kDim;
  uint16_t* halves = malloc((size_t)count * sizeof *halves + 1);
  for (int64_t n = 0; n < count; ++n) {
    uint32_t bits;
    memcpy(&bits, (const float*)tensor.data + n, sizeof bits);
    halves[n] = (uint16_t)(bits >> 16);
  }
  tensor.data = halves;
  tensor.type = HEADLIGHT_BFLOAT16;
  return tensor;
}

/* Zeros like it, in bfloat16. */
static headlight_tensor zeros_in_bfloat16(const array* like) {
  headlight_tensor tensor = in_bfloat16(like);
  memset(tensor.data, 0, (size_t)(like->shape[1] * like->shape[2] * kDim) * sizeof(uint16_t));
  return tensor;
}

/* Of 16 bits a number, with the shapes of those arrays. */
static int same_halves(const headlight_tensor* share, const headlight_tensor* whole, const headlight_mpi_run* runs,
                       int64_t count) {
  const int64_t row = whole->shape[2] * kDim;
  const uint16_t* of_share = share->data;
  for (int64_t n = 0; n < count; of_share += runs[n].count * row, ++n) {
    if (memcmp(of_share, (const uint16_t*)whole->data + runs[n].first * row,
               (size_t)(runs[n].count * row) * sizeof(uint16_t)) != 0)
      return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  const ranks world = begin_ranks(argc, argv);
  const int rank = world.rank, size = world.size;
  headlight_engine* const engine = world.engine;
  headlight_mpi_group* const group = world.group;
  const char* const blamed = world.blamed;
  headlight_error error;

  array query, key, value, out, out_gradient, query_gradient, key_gradient, value_gradient;
  make(&query, kLength, kHeads, 1);
  make(&key, kLength, kKeyHeads, 2);
  make(&value, kLength, kKeyHeads, 3);
  make(&out, kLength, kHeads, 4);
  make(&out_gradient, kLength, kHeads, 5);
  make(&query_gradient, kLength, kHeads, 6);
  make(&key_gradient, kLength, kKeyHeads, 7);
  make(&value_gradient, kLength, kKeyHeads, 8);
  const int64_t sums_shape[3] = {1, kHeads, kLength};
  headlight_tensor sums = {
      .data = numbers(kHeads * kLength, 9), .type = HEADLIGHT_FLOAT32, .rank = 3, .shape = sums_shape};
  headlight_attention_options options = {
      .struct_size = sizeof options, .causal = HEADLIGHT_CAUSAL_TOP_LEFT, .log_sum_exp = &sums};
  headlight_attention_gradients gradients = {.struct_size = sizeof gradients,
                                             .query = &query_gradient.tensor,
                                             .key = &key_gradient.tensor,
                                             .value = &value_gradient.tensor};
  check(headlight_attention(engine, &query.tensor, &key.tensor, &value.tensor, &out.tensor, &options, &error) ==
            HEADLIGHT_OK,
        error.message);
  options.log_sum_exp = NULL;
  check(headlight_attention_backward(engine, &query.tensor, &key.tensor, &value.tensor, &out.tensor, &sums,
                                     &out_gradient.tensor, &gradients, &options, &error) == HEADLIGHT_OK,
        error.message);

  const headlight_attention_shape whole = {.struct_size = sizeof whole,
                                           .query_length = kLength,
                                           .key_length = kLength,
                                           .query_heads = kHeads,
                                           .key_value_heads = kKeyHeads,
                                           .head_dim = kDim,
                                           .value_dim = kDim};
  headlight_mpi_run rows[kMostRuns], keys[kMostRuns];
  headlight_mpi_plan plan = {.struct_size = sizeof plan};
  check(headlight_mpi_plan_call(&whole, &options, rank, size, NULL, &plan, &error) == HEADLIGHT_OK, error.message);
  check(plan.query_runs <= kMostRuns && plan.ring * plan.head_ranks == size, "the counts of a plan");
  plan.queries = rows;
  plan.keys = keys;
  plan.query_room = plan.key_room = kMostRuns;
  check(headlight_mpi_plan_call(&whole, &options, rank, size, NULL, &plan, &error) == HEADLIGHT_OK, error.message);

  array own_query, own_key, own_value, own_out, own_out_gradient, own_query_gradient, own_key_gradient,
      own_value_gradient;
  take(&own_query, &query, rows, plan.query_runs, plan.query_rows);
  take(&own_key, &key, keys, plan.key_runs, plan.key_rows);
  take(&own_value, &value, keys, plan.key_runs, plan.key_rows);
  take(&own_out_gradient, &out_gradient, rows, plan.query_runs, plan.query_rows);
  make(&own_out, plan.query_rows, kHeads, 10);
  make(&own_query_gradient, plan.query_rows, kHeads, 10);
  make(&own_key_gradient, plan.key_rows, kKeyHeads, 10);
  make(&own_value_gradient, plan.key_rows, kKeyHeads, 10);
  const int64_t own_sums_shape[3] = {1, kHeads, plan.query_rows};
  headlight_tensor own_sums = {
      .data = numbers(kHeads * plan.query_rows, 9), .type = HEADLIGHT_FLOAT32, .rank = 3, .shape = own_sums_shape};
  options.log_sum_exp = &own_sums;
  check(headlight_mpi_attention(group, engine, &whole, &own_query.tensor, &own_key.tensor, &own_value.tensor,
                                &own_out.tensor, &options, NULL, &error) == HEADLIGHT_OK,
        error.message);
  check(same(&own_out, &out, rows, plan.query_runs), "out has the bits of one process");
  options.log_sum_exp = NULL;
  headlight_attention_gradients own = {.struct_size = sizeof own,
                                       .query = &own_query_gradient.tensor,
                                       .key = &own_key_gradient.tensor,
                                       .value = &own_value_gradient.tensor};
  check(headlight_mpi_attention_backward(group, engine, &whole, &own_query.tensor, &own_key.tensor, &own_value.tensor,
                                         &own_out.tensor, &own_sums, &own_out_gradient.tensor, &own, &options, NULL,
                                         &error) == HEADLIGHT_OK,
        error.message);
  check(same(&own_query_gradient, &query_gradient, rows, plan.query_runs),
        "the query gradient has the bits of one process");
  check(same(&own_key_gradient, &key_gradient, keys, plan.key_runs), "the key gradient has the bits of one process");
  check(same(&own_value_gradient, &value_gradient, keys, plan.key_runs),
        "the value gradient has the bits of one process");

  /* Keys and values of 16 bits travel as such. */
  const headlight_tensor narrow_key = in_bfloat16(&key), narrow_value = in_bfloat16(&value);
  const headlight_tensor own_narrow_key = in_bfloat16(&own_key), own_narrow_value = in_bfloat16(&own_value);
  const headlight_mpi_spread spread = {.struct_size = sizeof spread, .bytes_per_number = 2};
  check(headlight_attention(engine, &query.tensor, &narrow_key, &narrow_value, &out.tensor, &options, &error) ==
            HEADLIGHT_OK,
        error.message);
  check(headlight_mpi_attention(group, engine, &whole, &own_query.tensor, &own_narrow_key, &own_narrow_value,
                                &own_out.tensor, &options, &spread, &error) == HEADLIGHT_OK,
        error.message);
  check(same(&own_out, &out, rows, plan.query_runs), "out over keys of 16 bits has the bits of one process");

  /* Gradients of 16 bits, over operands of 16 bits. */
  const headlight_tensor narrow_query = in_bfloat16(&query), narrow_out = in_bfloat16(&out),
                         narrow_out_gradient = in_bfloat16(&out_gradient), dq = zeros_in_bfloat16(&query),
                         dk = zeros_in_bfloat16(&key), dv = zeros_in_bfloat16(&value);
  const headlight_tensor own_narrow_query = in_bfloat16(&own_query), own_narrow_out = in_bfloat16(&own_out),
                         own_narrow_out_gradient = in_bfloat16(&own_out_gradient),
                         own_dq = zeros_in_bfloat16(&own_query), own_dk = zeros_in_bfloat16(&own_key),
                         own_dv = zeros_in_bfloat16(&own_value);
  gradients = (headlight_attention_gradients){.struct_size = sizeof gradients, .query = &dq, .key = &dk, .value = &dv};
  headlight_attention_gradients own_narrow = {
      .struct_size = sizeof own_narrow, .query = &own_dq, .key = &own_dk, .value = &own_dv};
  check(headlight_attention_backward(engine, &narrow_query, &narrow_key, &narrow_value, &narrow_out, &sums,
                                     &narrow_out_gradient, &gradients, &options, &error) == HEADLIGHT_OK,
        error.message);
  check(headlight_mpi_attention_backward(group, engine, &whole, &own_narrow_query, &own_narrow_key, &own_narrow_value,
                                         &own_narrow_out, &own_sums, &own_narrow_out_gradient, &own_narrow, &options,
                                         &spread, &error) == HEADLIGHT_OK,
        error.message);
  check(same_halves(&own_dq, &dq, rows, plan.query_runs) && same_halves(&own_dk, &dk, keys, plan.key_runs) &&
            same_halves(&own_dv, &dv, keys, plan.key_runs),
        "gradients of 16 bits have the bits of one process");

  /* The last rank has no value, or asks for what there is not over ranks: all are told so at once, well before the
     timeout, and then go on. */
  const int is_last = rank == size - 1;
  const double begin = MPI_Wtime();
  check(headlight_mpi_attention(group, engine, &whole, &own_query.tensor, &own_key.tensor,
                                is_last ? NULL : &own_value.tensor, &own_out.tensor, &options, NULL,
                                &error) == HEADLIGHT_SYSTEM_ERROR,
        "no value");
  check(strncmp(error.message, blamed, strlen(blamed)) == 0 && strstr(error.message, "value is a null") != NULL,
        error.message);
  struct {
    int accumulate;
    headlight_tensor* bias;
    headlight_tensor* sinks;
    const char* message;
  } refused[] = {{1, NULL, NULL, "gradients.accumulate is set"},
                 {0, &own_out.tensor, NULL, "gradients.bias is given"},
                 {0, NULL, &own_sums, "gradients.sinks"}};
  own_sums.rank = 1; /* as sinks are, [Hq] */
  for (size_t n = 0; n < sizeof refused / sizeof refused[0]; ++n) {
    headlight_attention_gradients other = own;
    headlight_tensor sums_of_rank_3 = own_sums;
    sums_of_rank_3.rank = 3;
    if (is_last) {
      other.accumulate = refused[n].accumulate;
      other.bias = refused[n].bias;
      other.sinks = refused[n].sinks;
    }
    check(headlight_mpi_attention_backward(group, engine, &whole, &own_query.tensor, &own_key.tensor, &own_value.tensor,
                                           &own_out.tensor, &sums_of_rank_3, &own_out_gradient.tensor, &other, &options,
                                           NULL, &error) == HEADLIGHT_SYSTEM_ERROR,
          refused[n].message);
    check(strncmp(error.message, blamed, strlen(blamed)) == 0 && strstr(error.message, refused[n].message) != NULL,
          error.message);
  }
  own_sums.rank = 3;
  check(MPI_Wtime() - begin < 5, "nobody waits for a rank with wrong arguments");
  check(headlight_mpi_attention(NULL, engine, &whole, &own_query.tensor, &own_key.tensor, &own_value.tensor,
                                &own_out.tensor, &options, NULL, &error) == HEADLIGHT_INVALID_ARGUMENT,
        "no group");
  headlight_mpi_plan too_short = {.struct_size = sizeof(size_t) * 2};
  check(headlight_mpi_plan_call(&whole, &options, rank, size, NULL, &too_short, &error) == HEADLIGHT_INVALID_ARGUMENT &&
            strstr(error.message, "struct_size") != NULL,
        "a plan of another version");

  /* The last rank has other options: all fail, and then go on. */
  options.chunk = rank == size - 1 && size > 1 ? 100 : 0;
  const headlight_status status = headlight_mpi_attention(group, engine, &whole, &own_query.tensor, &own_key.tensor,
                                                          &own_value.tensor, &own_out.tensor, &options, NULL, &error);
  check(status == (size > 1 ? HEADLIGHT_SYSTEM_ERROR : HEADLIGHT_OK), "other options than the rest");
  check(size == 1 || strstr(error.message, "options.chunk=100") != NULL, error.message);
  return end_ranks(&world);
}
