// The second pass of attention(), for the rows whose probabilities are asked for.
#pragma once

#include "headlight/engine.h"
#include "ops/attention_rows.h"

namespace headlight::ops {

// Writes options.probabilities from the final row states that the first pass has left behind: exactly
// exp(score − log_sum_exp), zeros where a key is masked. Scores are worked out again; no memory beyond the call's
// scratch.
void write_probabilities(Engine& engine, const AttentionCall& call) noexcept;

}  // namespace headlight::ops
