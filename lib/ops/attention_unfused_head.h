// The plain route to one head's attention: scores written out in full, masked, made into shares, multiplied into the
// values.
#pragma once

#include "headlight/attention.h"
#include "ops/attention_check.h"
#include "ops/attention_masks.h"

namespace headlight::ops {

// One checked call; masks and biases are seen through strides of 0 where they broadcast.
struct UnfusedCall {
  Isa isa;
  View<const float, 4> query;
  View<const float, 4> key;
  View<const float, 4> value;
  View<float, 4> out;
  const AttentionOptions& options;
  AttentionSizes sizes;
  float scale;
  View<const std::uint8_t, 4> mask;
  View<const float, 4> bias;
};

// Where one head finds its memory: scores of the largest sequence, and what the products ask for.
struct UnfusedScratch {
  float* scores;
  float* gemm;
};

// Head h of sequence `sequence` of sample b: its rows of log_sum_exp, and its probabilities [queries, keys] in the
// scratch.
void unfused_probabilities(const UnfusedCall& call, const AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                           const UnfusedScratch& scratch) noexcept;

// Its rows of out, from those probabilities, which may then be lost.
void mix_unfused(const UnfusedCall& call, const AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                 const UnfusedScratch& scratch) noexcept;

}  // namespace headlight::ops
