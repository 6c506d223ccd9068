// The tiles of attention's backward pass: a block of query rows of one head against a block of keys.
//
// With P = exp2(exponent_scale · q·k − log-sum-exp), Z the dropout factors and δ the rows' Σ_d dO_d · out_d:
//   weights = P∘Z,  score gradients dS = P∘((dO Vᵀ)∘Z − δ) by the scores, and by the products where the cap is between,
//   dV += weightsᵀ dO,  dK += scale · dSᵀ Q,  dQ += scale · dS K.
// Every element of a product is one chain of fused multiply-adds from +0, over ascending rows or keys of the block, and
// then added to what the blocks before have left: its bits do not depend on how a block is cut into tiles.
//
// Where a feature multiplies pairs of bfloat16, a float of a product's operands is a word of two such numbers: of the
// scores two neighbours of a row, of dV and dK two rows, 2n and 2n + 1 of the block, and of dQ two keys of the block
// likewise. An iteration of the chain takes both, the second first, and numbers below 2⁻¹²⁶ for 0. Weights and score
// gradients are rounded to bfloat16 once they are whole. In tile registers an iteration is of 32, and sums over rows go
// on from block to block (amx-inl.h).
#pragma once

#include <cstdint>

#include "kernels/attention/kernels.h"
#include "kernels/rows/rows.h"

namespace headlight::kernels {

// The greatest score m of a row in units of log 2, and Σ_j exp2(score_j − m), of the keys so far.
struct RunningSum {
  float maximum;
  float sum;
};

// Rows padded with zeros to whole vectors are `padded` dims apart.
struct BackwardTile {
  static constexpr std::int64_t kMostRowsOfTiles = 512;  // of tile registers

  std::int64_t rows;
  std::int64_t keys;
  std::int64_t head_dim;
  std::int64_t value_dim;
  std::int64_t padded_head_dim;
  std::int64_t padded_value_dim;

  // As the products with keys and values take them: [rows][padded head_dim] and [rows][padded value_dim] floats, or
  // [rows][head_dim / 2] and [rows][value_dim / 2] words, filled up to whole iterations of tile registers, or see
  // keys_are_rows.
  const float* query;
  const float* out_gradient;
  // As the sums over rows take them: the same floats, or [⌈rows / 2⌉][padded …] words; of tile registers panels, as
  // AttentionKernels::pack_values() makes them.
  const float* query_of_sums;
  const float* out_gradient_of_sums;
  const float* minus_log_sum_exp;  // [rows], in units of log 2; −inf: a row of zeros
  const float* delta;              // [rows]
  // Null, or for rows whose scores are beyond 2²⁴ units of log 2 their greatest one, which then is taken from each
  // before minus_log_sum_exp is added; 0 for the others.
  const float* large_maximum;
  // Null; or [rows], to which float_score_gradients() then adds the block's keys, and gives nothing else.
  RunningSum* running_sums;

  // Where the rows that are worked on next lie in the tensors, as a hint.
  Operand next_query;
  Operand next_out_gradient;
  std::int64_t next_rows;

  // The block's keys and values, packed as AttentionKernels::pack_keys() does, and its keys as take_keys() does: rows,
  // pairs of rows, or tiles.
  const float* key_panels;
  const float* value_panels;
  const float* key;  // [keys][padded head_dim], or [⌈keys / 2⌉] of words

  // Of tile registers, where neither modifiers nor dropout are asked for: keys and values are rows, as copy_rows()
  // makes them, and query and out_gradient are packed as pack_keys() does.
  bool keys_are_rows;

  // Whether every row sees every key. Else row r sees begin[r] ≤ j < end[r], and of those what the masks let through.
  bool whole;
  const std::int32_t* begin;
  const std::int32_t* end;
  ScoreModifiers modifiers;  // exponent_scale and product_scale of either sign
  // [keys rounded up to whole vectors]: room for the derivatives of capped scores by raw ones, which score gradients
  // are then multiplied by. Null: there is no cap, or the gradients by capped scores are wanted.
  float* cap_derivatives;
  // Whether a query, key or gradient that some row must not see may be NaN or infinite, which a weight of 0 does not
  // silence.
  bool exactly;

  float scale;

  const AttentionDropout* dropout;  // null: none
  DropoutPlace first_row;           // the next rows follow it
  std::int64_t sequence_key;        // the block's first key, within its sequence

  // [rows][stride], stride ≥ keys rounded up to whole vectors; in words [⌈rows / 2⌉][stride], stride even.
  float* weights;
  float* score_gradients;
  std::int64_t stride;
  // Of words alone: the score gradients in pairs of keys, [rows][stride / 2]; and room for floats, 2 · query_rows ·
  // stride, or in tile registers kRoomOfTiles.
  static constexpr std::int64_t kRoomOfTiles = 2048;
  float* key_pair_gradients;
  float* room;

  // Sums that the products are added to; each may be null.
  Rows<float> key_gradient;    // [keys][padded head_dim]
  Rows<float> value_gradient;  // [keys][padded value_dim]
  Rows<float> query_gradient;  // [rows][head_dim]
};

// What of a tile is read from the tensors and given back to them. Those of an instruction set's
// AttentionBackwardKernels know float32 alone; those of typed_backward_row_kernels(), and of a feature, any type that
// floats can be stored in: numbers of 16 bits are widened as they are read, which is exact, and rounded once as they
// are given.
struct BackwardRowKernels {
  // to [rows][padded], zeros past dim.
  void (*pad_rows)(const Operand& from, std::int64_t rows, std::int64_t dim, float* to, std::int64_t padded) noexcept;
  // to[r] ← factor · from[r] (+ to[r]), a sum in float32; from [rows][padded], to [rows][dim].
  void (*give_rows)(const float* from, std::int64_t padded, std::int64_t rows, std::int64_t dim, float factor, bool add,
                    NumberType type, void* to, std::int64_t stride) noexcept;
  // to[r · stride] ← Σ_d a[r][d] · b[r][d], each lane's own sum first.
  void (*row_dots)(const Operand& a, const Operand& b, std::int64_t rows, std::int64_t dim, float* to,
                   std::int64_t stride) noexcept;
};

// What multiplies; of pairs of bfloat16 where queries, keys, values and output gradients are such and dims are even.
struct BackwardProductKernels {
  // weights and score_gradients, as the next two take them; zeros where a row does not see a key.
  void (*score_gradients)(const BackwardTile& tile) noexcept;
  // The same as floats, always.
  void (*float_score_gradients)(const BackwardTile& tile) noexcept;
  // key_gradient (still without the scale) and value_gradient. Null: score_gradients() adds to them as it goes.
  void (*key_value_gradients)(const BackwardTile& tile) noexcept;
  // query_gradient.
  void (*query_gradient)(const BackwardTile& tile) noexcept;
  // Rows as the sums over rows or keys take them: [rows][padded], zeros past dim; or words of two rows each, [⌈rows /
  // 2⌉][padded], zeros for a row that is not there. Null: see BackwardTile.
  void (*take_rows)(const Operand& from, std::int64_t rows, std::int64_t dim, float* to, std::int64_t padded) noexcept;
  // The same of a block's keys.
  void (*take_keys)(const Operand& from, std::int64_t keys, std::int64_t dim, float* to, std::int64_t padded) noexcept;
};

struct AttentionBackwardKernels {
  BackwardProductKernels products;
  BackwardRowKernels rows;
};

}  // namespace headlight::kernels
