// The modifiers between a product q·k and its score, row by row or for all rows of a block. They are compiled once, in
// score_modifiers.cc: a row is long enough that a call does not show.
#pragma once

#include "kernels/attention/kernels.h"
#include "kernels/attention/tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE bool caps(const kernels::ScoreModifiers& modifiers) {
  return kernels::asks_for(modifiers.asked, kernels::ScoreModifier::softcap);
}

// Row r's products in `scores` become its scores, which it has for the keys begin … end − 1 > begin of its block; what
// else their vectors hold becomes −inf. Returns the greatest. Some modifier is asked for.
float apply_modifiers(const kernels::ScoreModifiers& modifiers, std::int64_t r, std::int64_t begin, std::int64_t end,
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
void modify_together(const kernels::ScoreModifiers& modifiers, const ScoreRows& rows);

// Whether that can be: what masks and biases have for keys that a row does not see may not be read.
HEADLIGHT_INLINE bool can_modify_together(const kernels::ScoreModifiers& modifiers) {
  using kernels::ScoreModifier;
  return modifiers.asked != 0 && !kernels::asks_for(modifiers.asked, ScoreModifier::bias) &&
         !kernels::asks_for(modifiers.asked, ScoreModifier::mask) && (!caps(modifiers) || modifiers.cap.bound != 0.0f);
}

// The cap alone, of whole vectors, and its derivatives by what was capped, over the scale: 1 − (score / cap)².
void cap_scores(const kernels::ScoreModifiers& modifiers, std::int64_t count, float* scores, float* derivatives);

// See AttentionKernels::modify_row.
void modify_row(const kernels::ScoreModifiers& of_row, std::int64_t keys, float factor, float* scores,
                float* cap_derivatives) noexcept;

}  // namespace headlight::HEADLIGHT_TARGET
