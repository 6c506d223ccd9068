// The plain route to one head's attention: scores written out in full, masked, made into shares, multiplied into the
// values.
#pragma once

#include <string_view>

#include "headlight/attention.h"
#include "headlight/gemm.h"
#include "kernels/attention/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/masks.h"

namespace headlight::baseline {

// One checked call; masks and biases are seen through strides of 0 where they broadcast.
struct UnfusedCall {
  Isa isa;
  View<const float, 4> query;
  View<const float, 4> key;
  View<const float, 4> value;
  View<float, 4> out;
  const AttentionOptions& options;
  ops::AttentionSizes sizes;
  float scale;
  kernels::ScoreModifiers modifiers;  // of the scaled products: soft cap and slopes; the others are written out
  View<const std::uint8_t, 4> mask;
  View<const float, 4> bias;
};

// Where one head finds its memory: scores of the largest sequence, and what the products ask for.
struct UnfusedScratch {
  float* scores;
  float* gemm;
};

// Rows first … first + count of head h of sample b, as a matrix. One without elements may have no memory, and any
// strides.
template <class T>
View<T, 2> rows_of(const View<T, 4>& x, std::int64_t b, std::int64_t h, std::int64_t first,
                   std::int64_t count) noexcept {
  if (x.size() == 0) return {x.data, {count, x.extent(3)}};
  return {x.data + b * x.stride(0) + first * x.stride(1) + h * x.stride(2), {count, x.extent(3)}, {x.stride(1), 1}};
}

// One head of one sequence, and the matrix of its scores and later its probabilities.
struct UnfusedHead {
  const UnfusedCall& call;
  const ops::AttentionSequence& sequence;
  std::int64_t b;
  std::int64_t h;
  ops::IntervalRule rule;
  View<float, 2> scores;  // [queries, keys]

  // Row `row` through soft cap and slopes; with room for them, the derivatives of capped scores by raw ones.
  void apply_modifiers(std::int64_t row, float* scores_of_row, float* cap_derivatives) const noexcept;

  // Calls f(key) for the keys that the row must not see, ascending.
  template <class Function>
  void for_each_hidden(std::int64_t row, Function f) const noexcept {
    const ops::KeyInterval seen = rule(row);
    for (std::int64_t key = 0; key < seen.begin; ++key) f(key);
    for (std::int64_t key = seen.begin; call.mask && key < seen.end; ++key) {
      const bool entry = call.mask(b, h, sequence.first_query + row, sequence.first_key + key) != 0;
      if (entry == (call.options.mask->means == MaskMeans::ignore)) f(key);
    }
    for (std::int64_t key = seen.end; key < sequence.keys; ++key) f(key);
  }
};
inline UnfusedHead unfused_head(const UnfusedCall& call, const ops::AttentionSequence& sequence, std::int64_t b,
                                std::int64_t h, const UnfusedScratch& scratch) noexcept {
  return {call,
          sequence,
          b,
          h,
          ops::IntervalRule(call.options, sequence),
          View<float, 2>(scratch.scores, {sequence.queries, sequence.keys})};
}

[[nodiscard]] UnfusedCall unfused_call(Isa isa, View<const float, 4> query, View<const float, 4> key,
                                       View<const float, 4> value, View<float, 4> out, const AttentionOptions& options,
                                       const ops::AttentionSizes& sizes) noexcept;

// c ← α · op(a) · op(b) + β · c, some rows of c at a time: what a product asks for then does not grow with its rows,
// and no third matrix of scores is needed to turn one round. The bits are those of gemm().
void multiply_unfused(Isa isa, const View<const float, 2>& a, Transpose transpose_a, const View<const float, 2>& b,
                      Transpose transpose_b, const View<float, 2>& c, float alpha, float beta, float* scratch) noexcept;

// rows [queries, keys] of the head through the dropout of its places.
void drop_unfused(const UnfusedHead& head, float* rows) noexcept;

// Raw scores of rows first … first + scores.extent(0) of a head, [rows, keys].
void raw_unfused_scores(const UnfusedHead& head, std::int64_t first, const View<float, 2>& scores,
                        float* gemm_scratch) noexcept;

// options.scores of head h of sample b, raw or capped: those of all rows and keys, whatever their sequence.
void give_unfused_products(const UnfusedCall& call, std::int64_t b, std::int64_t h, float* gemm_scratch) noexcept;

// Head h of sequence `sequence` of sample b: its rows of log_sum_exp, and its probabilities [queries, keys] in the
// scratch.
void unfused_probabilities(const UnfusedCall& call, const ops::AttentionSequence& sequence, std::int64_t b,
                           std::int64_t h, const UnfusedScratch& scratch) noexcept;

// Its rows of out, from those probabilities, which may then be lost.
void mix_unfused(const UnfusedCall& call, const ops::AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                 const UnfusedScratch& scratch) noexcept;

}  // namespace headlight::baseline
