// Which rank holds which rows: blocks as layers/row_distribution.h cuts them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/mpi.h"
#include "layers/row_distribution.h"

namespace headlight::mpi {

using Block = layers::OwnedBlock;  // whose owner is a rank
using layers::cut_into_blocks;
using layers::place_in;
using layers::rows_of;
using layers::runs_of;

// Of so many shards, those of a rank; and the rank that one of them belongs to.
[[nodiscard]] Run shards_of(std::int64_t shards, int rank, int size) noexcept;
[[nodiscard]] int rank_of_shard(std::int64_t shard, std::int64_t shards, int size) noexcept;

// The rows of some runs in runs of at most `most` rows, a multiple of 64. A cut within a sequence, which runs of
// runs_of() begin at a multiple of 64 of, is again one.
[[nodiscard]] std::vector<Run> cut_runs(std::span<const Run> runs, std::span<const std::int64_t> offsets,
                                        std::int64_t most);

}  // namespace headlight::mpi
