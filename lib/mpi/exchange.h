// Between a rank's share, all heads of some rows, and what it works on, some heads of all rows of its row of the grid.
#pragma once

#include <vector>

#include "headlight/tensor.h"
#include "mpi/call.h"
#include "mpi/transport.h"

namespace headlight::mpi {

// share [B, n, H · head_ranks, D] → [B, m, H, D].
[[nodiscard]] Tensor<float, 4> gather_rows(Transport& transport, const Grid& grid, const Holding& holding,
                                           const View<const float, 4>& share);
// And back.
void scatter_rows(Transport& transport, const Grid& grid, const Holding& holding, const View<const float, 4>& rows,
                  const View<float, 4>& share);

}  // namespace headlight::mpi
