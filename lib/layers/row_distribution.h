// Rows of a sequence in blocks, distributed to owners in a zigzag: the shards of a sequence, or ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/row_shards.h"

namespace headlight::layers {

// Attention's dropout draws so many numbers of a row at a time, and so may blocks be cut.
inline constexpr std::int64_t kRowCut = 64;

// Rows first … first + count − 1 of a tensor, and who owns them.
struct OwnedBlock {
  std::int64_t first;
  std::int64_t count;
  int owner;
};

// How long blocks are: as asked, where one that is longer than all rows is as good as one that holds them. Where nobody
// asks (0), four for each owner at least, as far as that goes, which are two rounds each way; 1024 rows at most.
[[nodiscard]] std::int64_t block_length(std::int64_t asked, std::int64_t length, std::int64_t owners) noexcept;

// Sequences, or with empty offsets one of that length, cut into blocks of at most so many rows, which are distributed
// in a zigzag, 0 1 2 2 1 0 0 1 …. A cut within a sequence is a multiple of `block` from its first row. Ascending.
[[nodiscard]] std::vector<OwnedBlock> cut_into_blocks(std::int64_t length, std::span<const std::int64_t> offsets,
                                                      std::int64_t block, int owners);

// The rows of the owners first_owner … first_owner + owners − 1, neighbouring blocks as one run.
[[nodiscard]] std::vector<RowRun> runs_of(std::span<const OwnedBlock> blocks, int first_owner, int owners);
[[nodiscard]] std::int64_t rows_of(std::span<const RowRun> runs) noexcept;

// Where a row lies, counted from the first that the runs hold; one that they do not hold, where the next that they do.
[[nodiscard]] std::int64_t place_in(std::span<const RowRun> runs, std::int64_t row) noexcept;

}  // namespace headlight::layers
