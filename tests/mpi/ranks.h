// The ranks that a test program runs on: all run the same tests in the same order.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>

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

// Of so many shards, those of a rank, as mpi::ShardedAdamW deals them out.
[[nodiscard]] inline mpi::Run held_by(int rank, int size, std::int64_t shards) {
  const std::int64_t fewer = shards / size, longer = shards % size;
  return {rank * fewer + std::min<std::int64_t>(rank, longer), fewer + (rank < longer ? 1 : 0)};
}

}  // namespace headlight::test
