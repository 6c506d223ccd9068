// Which rank holds which rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/mpi.h"

namespace headlight::mpi {

// Rows first … first + count − 1 of a tensor, and the rank that holds them.
struct Block {
  std::int64_t first;
  std::int64_t count;
  int owner;
};

// Sequences, or with empty offsets one of that length, cut into blocks of at most so many rows, which are dealt out to
// the ranks back and forth. A cut within a sequence is a multiple of `block` from its first row. Ascending.
[[nodiscard]] std::vector<Block> cut_into_blocks(std::int64_t length, std::span<const std::int64_t> offsets,
                                                 std::int64_t block, int ranks);

// The rows of the ranks first_rank … first_rank + ranks − 1, neighbouring blocks as one run.
[[nodiscard]] std::vector<Run> runs_of(std::span<const Block> blocks, int first_rank, int ranks);
[[nodiscard]] std::int64_t rows_of(std::span<const Run> runs) noexcept;

// The same rows in runs of at most `most` rows, a multiple of 64. A cut within a sequence, which runs of runs_of()
// begin at a multiple of 64 of, is again one.
[[nodiscard]] std::vector<Run> cut_runs(std::span<const Run> runs, std::span<const std::int64_t> offsets,
                                        std::int64_t most);

// Where a row lies that the runs hold, counted from the first of them.
[[nodiscard]] std::int64_t place_in(std::span<const Run> runs, std::int64_t row) noexcept;

}  // namespace headlight::mpi
