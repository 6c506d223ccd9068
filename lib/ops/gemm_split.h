// How a product is cut into tasks. No cut touches the order of summation.
#pragma once

#include <cstdint>

#include "kernels/gemm_kernels.h"

namespace headlight::ops {

// One product is row_blocks × column_blocks blocks; the blocks of all products of the batch are handed out in order,
// `grain` at a time.
struct GemmSplit {
  std::int64_t row_blocks;
  std::int64_t row_groups;  // divides row_blocks: all blocks of a group of rows are handed out before those of the next
  std::int64_t column_blocks;
  std::int64_t columns_each;  // a multiple of the panel width; the last block may have fewer
  bool rows_fastest;          // neighbouring blocks of a group share their columns of B, otherwise their rows of A
  std::int64_t grain;
  std::int64_t tasks;
  std::int64_t packed_floats;   // of B where it is packed for all blocks of rows at once, a multiple of 32; else 0
  std::int64_t scratch_floats;  // for one worker, a multiple of 32
  double nanoseconds;           // rough time of everything on one thread
};

enum class PackB : std::uint8_t {
  once_where_it_pays,  // all of it at once, for many rows
  by_block             // each block of rows packs a panel at a time: less memory, more work
};

// Of `product` the sizes and the layout of B count; no pointer is looked at.
[[nodiscard]] GemmSplit split_gemm(const kernels::GemmKernels& kernels, int threads, std::int64_t batch,
                                   const kernels::GemmBlock& product,
                                   PackB pack_b = PackB::once_where_it_pays) noexcept;

}  // namespace headlight::ops
