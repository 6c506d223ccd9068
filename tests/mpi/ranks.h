// The ranks that a test program runs on: all run the same tests in the same order.
#pragma once

#include <mpi.h>

#include "headlight/mpi.h"

namespace headlight::test {

// Of MPI_COMM_WORLD, made anew for each test that spoils it.
[[nodiscard]] inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
[[nodiscard]] inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

}  // namespace headlight::test
