// The steps between a product q·k and its score, row by row or for all rows of a block. They are compiled once, in
// score_modifiers.cc: a row is long enough that a call does not show.
#pragma once

#include "kernels/attention/kernels.h"
#include "kernels/attention/tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE bool caps(const kernels::ScoreSteps& steps) {
  return kernels::asks_for(steps.asked, kernels::ScoreStep::soft_cap);
}

// Row r's products in `scores` become its scores, which it has for the keys begin … end − 1 > begin of its block; what
// else their vectors hold becomes −inf. Returns the greatest. Some step is asked for.
float apply_steps(const kernels::ScoreSteps& steps, std::int64_t r, std::int64_t begin, std::int64_t end,
                  float* scores);

// Products of some rows with keys [begin, end) of their block, whole vectors.
struct ScoreRows {
  float* scores;  // of the block's first key
  std::int64_t stride;
  std::int64_t count;
  std::int64_t begin;
  std::int64_t end;
  float* maxima;  // [count][kLanes]; as those of StoreScores
};
// The same for those, whether the rows see the keys or not. It takes less time: little is looked up for each row, and
// no row has edges.
void step_together(const kernels::ScoreSteps& steps, const ScoreRows& rows);

// Whether that can be: what masks and biases have for keys that a row does not see may not be read.
HEADLIGHT_INLINE bool can_step_together(const kernels::ScoreSteps& steps) {
  using kernels::ScoreStep;
  return steps.asked != 0 && !kernels::asks_for(steps.asked, ScoreStep::bias) &&
         !kernels::asks_for(steps.asked, ScoreStep::mask) && (!caps(steps) || steps.cap.bound != 0.0f);
}

// The cap alone, of whole vectors, and its derivatives by what was capped, over the scale: 1 − (score / cap)².
void cap_scores(const kernels::ScoreSteps& steps, std::int64_t count, float* scores, float* derivatives);

// See AttentionKernels::step_row.
void step_row(const kernels::ScoreSteps& of_row, std::int64_t keys, float factor, float* scores,
              float* cap_derivatives) noexcept;

}  // namespace headlight::HEADLIGHT_TARGET
