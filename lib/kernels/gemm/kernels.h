// Matrix products, one block of C on one thread: the contract between the kernels of an instruction set and
// lib/ops/gemm.
//
//   C = activation(α · A · B + β · C + bias) + residual
//
// Order of summation, the same for every path: K is cut into n = ⌈K / longest⌉ blocks (depth_block below). Within a
// block an element is one chain of fused multiply-adds over ascending k that starts from +0; the sums of the blocks are
// added in ascending order. So the bits depend on K and the instruction set alone, not on how many rows or columns are
// computed together.
//
// (Of int8 the sum of a block is an integer, exact in any order: int8-inl.h. Tile registers go on with a sum of
// bfloat16 from block to block: amx_block-inl.h.)
//
// A packed B, "panels": for each block of K, for each panel of `panel_width` columns, [k][panel_width]; the last panel
// has the vectors that it needs, the last of them filled up with zeros:
//
//            panel 0        panel 1
//          ┌─────────┐    ┌─────────┐
//   k = 0  │ b00 b01 …    │ b0,w …
//   k = 1  │ b10 b11 …    │ b1,w …
#pragma once

#include <cstdint>

#include "headlight/activation_kind.h"
#include "kernels/operand.h"

namespace headlight::kernels {

struct GemmEpilogue {
  float alpha;
  float beta;  // with 0, C is not read
  Activation activation;
  const float* bias;      // one for each column of the block, or null
  const float* residual;  // the block's first element, or null
  std::int64_t residual_row_stride;
};

// C [rows, columns] from A [rows, depth] and B [depth, columns].
struct GemmBlock {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;
  // A's element (i, k) lies i · a_row_stride + k · a_depth_stride numbers behind a. They are bfloat16 only where
  // GemmKernels::round_rows() is given. There a block takes the rows that it made, as floats with a_depth_stride 1.
  const void* a;
  NumberType a_type;
  std::int64_t a_row_stride;
  std::int64_t a_depth_stride;
  // The whole matrix, of which the block's columns begin at b_column. Of shapes alone it has no memory. The stride of
  // panels is N rounded up to whole vectors.
  Operand b;
  std::int64_t b_column;
  void* c;
  NumberType c_type;  // float32 or bfloat16, to which the epilogue's result is rounded
  std::int64_t c_row_stride;
  GemmEpilogue epilogue;
  float* scratch;  // as many floats as GemmKernels::scratch_floats says, 64-byte aligned; may be null when that is 0
  // Asked between blocks of K, which take milliseconds: from its first yes on the rest is left, and C is anything. Null
  // where the product shall not end before it is done.
  bool (*is_cancelled)() noexcept;
};

struct GemmKernels {
  int lanes;
  int tile_rows;       // rows of the largest tile
  int panel_width;     // its columns
  int in_place_tiles;  // with at most so many tiles of rows, B [K, N] is read where it lies
  int products;        // multiply-adds of a lane in the time that one takes in float32

  // Floats of scratch that such a block asks for: a place to pack one panel where B is not packed, and block sums where
  // K has several blocks.
  std::int64_t (*scratch_floats)(const GemmBlock& block) noexcept;
  void (*block)(const GemmBlock& block) noexcept;

  // Where tiles read A rounded: floats of a row of it; and the rows of a block's A, 64-byte aligned and that far apart.
  // Else null.
  std::int64_t (*rounded_row)(std::int64_t depth) noexcept;
  void (*round_rows)(const GemmBlock& block, float* rounded) noexcept;
  // Whether those rows hold bfloat16 numbers one behind the other, as memory of them does.
  bool reads_bfloat16;

  // Packs columns [column, column + columns) of B [depth, …], one panel of each block of K: columns ≤ panel_width,
  // filled up to whole vectors. They are the columns of b from b_column on, which may hold no others. b is no panels,
  // and float32; rows of it may be bfloat16 where the panels are; and where those are of int8 or int4 it may have
  // scales: then its floats are the integers that the panels get (Operand::scales). `panels` describes those at
  // `packed`. Each block may lie in memory that the system has yet to find, for milliseconds: before each
  // is_cancelled() is asked, and from its first yes on the rest is left.
  void (*pack_columns)(const Operand& b, std::int64_t b_column, std::int64_t depth, std::int64_t column,
                       std::int64_t columns, const Operand& panels, float* packed,
                       bool (*is_cancelled)() noexcept) noexcept;
  // Length of the blocks of K; the last may be shorter.
  std::int64_t (*depth_block)(std::int64_t depth) noexcept;
};

}  // namespace headlight::kernels
