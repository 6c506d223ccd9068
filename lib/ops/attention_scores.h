// Scores, for those who ask to see them.
#pragma once

#include "headlight/engine.h"
#include "ops/attention_rows.h"

namespace headlight::ops {

// options.scores, of a call whose options ask for them.
void write_scores(Engine& engine, const AttentionCall& call) noexcept;

}  // namespace headlight::ops
