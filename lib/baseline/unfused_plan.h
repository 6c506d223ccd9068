// How many workers the written-out baseline wakes, and what each finds where: a function of the sizes and of the
// options' sequences, so that whoever tells what the baseline would take need not hold it.
#pragma once

#include <cstdint>

#include "headlight/engine.h"
#include "headlight/gemm.h"
#include "ops/attention/check.h"
#include "ops/call_plan.h"

namespace headlight::baseline {

// Rows of a product that are computed at a time.
inline constexpr std::int64_t kRowsAtOnce = 128;
// Rows whose raw scores are worked out again at a time, for the derivatives of a soft cap.
inline constexpr std::int64_t kCappedRows = 64;

// Scores of the largest sequence, and what the products ask for.
struct UnfusedPlan : ops::CallPlan {
  ops::WorkerPart<float> scores;
  ops::WorkerPart<float> gemm;
};
struct UnfusedBackwardPlan : ops::CallPlan {
  ops::WorkerPart<float> probabilities;  // where the forward pass did not keep them
  ops::WorkerPart<float> gradients;
  ops::WorkerPart<float> raw_scores;  // of some rows, and derivatives of one, where there is a soft cap
  ops::WorkerPart<float> gemm;
};

// Throw OutOfMemory where no machine could hold the scores.
[[nodiscard]] UnfusedPlan plan_unfused(const Engine& engine, const ops::AttentionSizes& sizes,
                                       const AttentionOptions& options, std::int64_t tasks);
[[nodiscard]] UnfusedBackwardPlan plan_unfused_backward(const Engine& engine, const ops::AttentionSizes& sizes,
                                                        const AttentionOptions& options, bool keeps_probabilities,
                                                        bool adds_to_shared_sums);

}  // namespace headlight::baseline
