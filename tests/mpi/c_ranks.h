/* What the C programs over ranks share: what fails is said, and where this process stands among them. */
#pragma once

#include <stdio.h>

#include "headlight/c/mpi.h"
#include "headlight/headlight.h"

static int failures = 0;
static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

typedef struct ranks {
  int rank, size;
  headlight_engine* engine;
  headlight_mpi_group* group;
  char blamed[32]; /* how an error of the last rank begins */
} ranks;

static ranks begin_ranks(int argc, char** argv) {
  ranks all = {0};
  headlight_error error;
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &all.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &all.size);
  snprintf(all.blamed, sizeof all.blamed, "rank %d: ", all.size - 1);
  check(headlight_engine_create(NULL, &all.engine, &error) == HEADLIGHT_OK, error.message);
  check(headlight_mpi_group_create(MPI_COMM_WORLD, 10000, &all.group, &error) == HEADLIGHT_OK, error.message);
  return all;
}

/* The exit code of main(). */
static int end_ranks(const ranks* all) {
  headlight_mpi_group_destroy(all->group);
  headlight_engine_destroy(all->engine);
  if (failures > 0) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
  return 0;
}
