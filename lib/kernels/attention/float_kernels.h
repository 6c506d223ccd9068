// What the tables of other types share with that of float32: compiled once for each instruction set, in kernels.cc.
#pragma once

#include "kernels/attention/kernels.h"

namespace headlight::HEADLIGHT_TARGET {

void attend_float_block(const kernels::AttentionBlock& block) noexcept;
void attend_short_floats(const kernels::AttentionShort& head) noexcept;
void float_probabilities(const kernels::ProbabilityTile& tile) noexcept;
void float_scores(const kernels::ScoreTile& tile) noexcept;

}  // namespace headlight::HEADLIGHT_TARGET
