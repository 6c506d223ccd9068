#pragma once

#include "headlight/mpi.h"
#include "mpi/transport.h"

namespace headlight::mpi {

struct Group::State {
  State(MPI_Comm communicator, const GroupOptions& options) : transport(communicator, options) {}
  Transport transport;
};

}  // namespace headlight::mpi
