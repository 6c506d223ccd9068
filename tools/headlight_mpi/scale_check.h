// Whether what headlight-mpi study scale has computed is right: rows by float64, and sums that all rows must keep.
#pragma once

#include <mpi.h>

#include <string>

#include "tools/headlight_mpi/scale_tensors.h"

namespace headlight::program::scale_study {

// Of `out`, this rank's first row and its last. What is wrong, or nothing.
[[nodiscard]] std::string problem_of_forward(const Tensors& tensors);

// The same rows of the query gradient, as the rows of `out` and log_sum_exp have it. And of all ranks' rows together,
// since the probabilities P of each row sum to 1, and dK and dQ are sums of the same score gradients:
//   Σ_j dV_j = Σ_i dO_i,  Σ_j dK_j · K_j = Σ_i dQ_i · Q_i.
[[nodiscard]] std::string problem_of_backward(const Tensors& tensors, MPI_Comm ranks);

}  // namespace headlight::program::scale_study
