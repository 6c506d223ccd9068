/* Training over ranks from C: with one shard the bits of headlight_adamw in one process, moments too, and an error that
   all ranks have. Ends with 0 when everything is as it should be. */
#include <stdlib.h>
#include <string.h>

#include "c_ranks.h"

enum { kRows = 6, kIn = 5, kOut = 3, kIterations = 4, kMoments = 4 };

static headlight_layer* make_layer(void) {
  headlight_error error;
  headlight_layer* layer = NULL;
  const headlight_linear_options options = {.struct_size = sizeof options, .in_features = kIn, .out_features = kOut};
  check(headlight_linear_create(&options, &layer, &error) == HEADLIGHT_OK, error.message);
  check(headlight_layer_initialize(layer, 1, &error) == HEADLIGHT_OK, error.message);
  check(headlight_layer_set_training(layer, 1, &error) == HEADLIGHT_OK, error.message);
  return layer;
}

/* The gradient of some batch for a step. */
static void learn(headlight_layer* layer, headlight_engine* engine, int step) {
  static float numbers[kRows * (kIn + kOut)];
  for (int n = 0; n < kRows * (kIn + kOut); ++n) numbers[n] = (float)((n * 37 + step * 11) % 17) / 17 - 0.5f;
  const int64_t x_shape[2] = {kRows, kIn}, y_shape[2] = {kRows, kOut};
  const headlight_tensor x = {.data = numbers, .type = HEADLIGHT_FLOAT32, .rank = 2, .shape = x_shape};
  const headlight_tensor y = {.data = numbers + kRows * kIn, .type = HEADLIGHT_FLOAT32, .rank = 2, .shape = y_shape};
  headlight_error error;
  check(headlight_linear_backward(layer, engine, &x, &y, NULL, NULL, &error) == HEADLIGHT_OK, error.message);
}

static void read_weight(const headlight_layer* layer, float* to) {
  const int64_t shape[2] = {kOut, kIn};
  const headlight_tensor weight = {.data = to, .type = HEADLIGHT_FLOAT32, .rank = 2, .shape = shape};
  headlight_error error;
  check(headlight_layer_get_parameter(layer, "weight", &weight, &error) == HEADLIGHT_OK, error.message);
}

int main(int argc, char** argv) {
  const ranks world = begin_ranks(argc, argv);
  const int rank = world.rank, size = world.size;
  headlight_engine* const engine = world.engine;
  headlight_mpi_group* const group = world.group;
  const char* const blamed = world.blamed;
  headlight_error error;

  headlight_layer *one = make_layer(), *own = make_layer();
  headlight_optimizer* optimizer = NULL;
  headlight_mpi_adamw* adamw = NULL;
  check(headlight_adamw_create(&one, 1, NULL, &optimizer, &error) == HEADLIGHT_OK, error.message);
  check(headlight_mpi_adamw_create(group, &own, 1, 1, NULL, &adamw, &error) == HEADLIGHT_OK, error.message);
  const double rate = 0.01;
  const headlight_step_options options = {.struct_size = sizeof options, .learning_rate = &rate};
  for (int step = 0; step < kIterations; ++step) {
    headlight_step_report expected = {.struct_size = sizeof expected}, report = {.struct_size = sizeof report};
    headlight_optimizer_zero_gradients(optimizer);
    learn(one, engine, step);
    check(headlight_optimizer_step(optimizer, engine, &options, &expected, &error) == HEADLIGHT_OK, error.message);
    headlight_mpi_adamw_zero_gradients(adamw);
    for (int64_t n = 0; n < headlight_mpi_adamw_shards(adamw).count; ++n) {
      learn(own, engine, step);
      check(headlight_mpi_adamw_take(adamw, engine, &error) == HEADLIGHT_OK, error.message);
    }
    check(headlight_mpi_adamw_step(adamw, engine, &options, &report, &error) == HEADLIGHT_OK, error.message);
    check(report.gradient_norm == expected.gradient_norm && report.non_finite == NULL, "the report of one process");
  }
  float expected[kOut * kIn], found[kOut * kIn];
  read_weight(one, expected);
  read_weight(own, found);
  check(memcmp(expected, found, sizeof found) == 0, "weights have the bits of one process");
  check(headlight_mpi_adamw_steps(adamw) == kIterations, "steps are counted");

  /* Moments of weight and bias, first and second. */
  float whole[kMoments][kOut * kIn];
  float* places[kMoments] = {whole[0], whole[1], whole[2], whole[3]};
  check(headlight_mpi_adamw_collect_moments(adamw, 0, rank == 0 ? places : NULL, rank == 0 ? kMoments : 0, &error) ==
            HEADLIGHT_OK,
        error.message);
  for (int64_t n = 0; rank == 0 && n < headlight_optimizer_state_count(optimizer); ++n) {
    const char* name;
    int32_t dimensions;
    const int64_t* shape;
    check(headlight_optimizer_state(optimizer, n, &name, &dimensions, &shape, &error) == HEADLIGHT_OK, error.message);
    const headlight_tensor moment = {.data = expected, .type = HEADLIGHT_FLOAT32, .rank = dimensions, .shape = shape};
    check(headlight_optimizer_get_state(optimizer, name, &moment, &error) == HEADLIGHT_OK, error.message);
    const size_t count = (size_t)(dimensions == 2 ? shape[0] * shape[1] : shape[0]);
    check(memcmp(expected, whole[n], count * sizeof(float)) == 0, "moments have the bits of one process");
  }
  int64_t held = 0, all = 0;
  for (int64_t n = 0; n < headlight_mpi_adamw_moment_count(adamw); ++n) {
    const char* name;
    int64_t first, count;
    float* values;
    check(headlight_mpi_adamw_moment(adamw, n, &name, &first, &count, &values, &error) == HEADLIGHT_OK, error.message);
    check(strstr(name, "_moment.0.") != NULL && first == 0 && values != NULL, "a moment has a name and a place");
    held += count;
  }
  MPI_Allreduce(&held, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  check(all == 2 * (kOut * kIn + kOut), "every moment is kept once");

  /* The last rank has no engine: all are told. */
  for (int64_t n = 0; n < headlight_mpi_adamw_shards(adamw).count; ++n) {
    check(headlight_mpi_adamw_take(adamw, engine, &error) == HEADLIGHT_OK, error.message);
  }
  check(headlight_mpi_adamw_step(adamw, rank == size - 1 ? NULL : engine, &options, NULL, &error) ==
            HEADLIGHT_SYSTEM_ERROR,
        "no engine");
  check(strncmp(error.message, blamed, strlen(blamed)) == 0, error.message);
  check(headlight_mpi_adamw_step(NULL, engine, &options, NULL, &error) == HEADLIGHT_INVALID_ARGUMENT, "no optimiser");
  check(headlight_mpi_adamw_set_steps(adamw, -1, &error) == HEADLIGHT_INVALID_ARGUMENT, "fewer than no steps");

  /* No parameters have no moments, and the first rank gives room for one. */
  headlight_mpi_adamw* none = NULL;
  check(headlight_mpi_adamw_create(group, NULL, 0, 1, NULL, &none, &error) == HEADLIGHT_OK, error.message);
  check(headlight_mpi_adamw_moment_count(none) == 0, "no moments");
  check(headlight_mpi_adamw_collect_moments(none, 0, rank == 0 ? places : NULL, rank == 0, &error) ==
            HEADLIGHT_SYSTEM_ERROR,
        "room for what there is none of");
  check(strncmp(error.message, "rank 0: ", 8) == 0, error.message);

  headlight_mpi_adamw_destroy(none);
  headlight_mpi_adamw_destroy(adamw);
  headlight_optimizer_destroy(optimizer);
  headlight_layer_destroy(one);
  headlight_layer_destroy(own);
  return end_ranks(&world);
}
