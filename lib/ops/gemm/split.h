// How products are cut into tasks, and how much scratch memory they take. No cut touches the order of summation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headlight/engine.h"
#include "kernels/gemm/kernels.h"
#include "ops/call_plan.h"

namespace headlight::ops {

// Who rounds A, where the kernels read it so: each row once.
enum class RoundA : std::uint8_t {
  no,
  ahead,    // all workers, all rows, before the products
  by_block  // who computes a block of rows, which then is one of all columns
};

// Whether A, bfloat16 where the kernels read such, lies as they would round it: in whole words of two numbers.
[[nodiscard]] bool lies_rounded(const kernels::GemmKernels& kernels, const kernels::GemmBlock& product) noexcept;

// One product is row_blocks × column_blocks blocks; the blocks of all products of the batch are handed out in order,
// `grain` at a time.
struct GemmSplit : CallPlan {
  std::int64_t row_blocks;
  std::int64_t row_groups;  // divides row_blocks: all blocks of a group of rows are handed out before those of the next
  std::int64_t column_blocks;
  std::int64_t columns_each;  // a multiple of the panel width; the last block may have fewer
  bool rows_fastest;          // neighbouring blocks of a group share their columns of B, otherwise their rows of A
  std::int64_t grain;
  std::int64_t tasks;
  bool packs_first;  // all of B, for all blocks of rows
  runtime::ScratchPart<float> packed;
  RoundA rounding;
  runtime::ScratchPart<float> rounded;  // rows of A; by block, each worker's behind those of the one before
  WorkerPart<float> scratch;            // of the kernel

  // Of the smallest products it lies on the stack: borrowing a block would show.
  static constexpr std::size_t kStackBytes = 4 << 10;
  [[nodiscard]] bool fits_stack() const noexcept { return workers == 1 && bytes() <= kStackBytes; }
  // Bytes from the engine.
  [[nodiscard]] std::size_t borrowed() const noexcept { return fits_stack() ? 0 : bytes(); }
};

enum class PackB : std::uint8_t {
  once_where_it_pays,  // all of it at once, for many rows
  by_block             // each block of rows packs a panel at a time: less memory, more work
};

// So many rows at most the workers together multiply by all columns of a B of float32, bfloat16 or int8 at once.
[[nodiscard]] std::int64_t gemm_most_rows_at_once(const Engine& engine) noexcept;
// How many of `rows` go through products at once: even pieces of whole tiles (the types' smallest), none of more than
// `most` rows or those. It does not grow with `rows`: 145 may go in smaller pieces than 144.
[[nodiscard]] std::int64_t gemm_rows_at_once(const Engine& engine, std::int64_t rows, std::int64_t most) noexcept;

// Of `product` the sizes and the layout of B count; no pointer is looked at.
[[nodiscard]] GemmSplit split_gemm(const Engine& engine, std::int64_t batch, const kernels::GemmBlock& product,
                                   PackB pack_b = PackB::once_where_it_pays) noexcept;

// What such a product takes from the engine at most, with as many rows as that or fewer, of an A whose rows lie as they
// are: split_gemm() of fewer may take more. Of panels, or of a B [N, K] that is transposed.
[[nodiscard]] std::size_t gemm_bytes_up_to(const Engine& engine, kernels::GemmBlock product) noexcept;

}  // namespace headlight::ops
