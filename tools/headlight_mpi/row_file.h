// A .npy file that all ranks write together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/mpi.h"

namespace headlight::program {

// Writes [B, length, H, D] of float32, which appears whole or not at all; `runs` are the rows of every rank, and
// `share` [B, n, H, D] this rank's. Where all ranks see the folder, each writes its own rows. Else, or where the target
// is no regular file, they come to rank 0 run by run. Throws mpi::Error, on all ranks.
void write_rows(mpi::Group& group, const std::string& path, std::int64_t length,
                std::span<const std::vector<RowRun>> runs, const View<const float, 4>& share);

}  // namespace headlight::program
