// Calls of attention that Ctrl-C can end: long ones are computed in slices, of query rows, samples or heads, with the
// bits of the whole call.
#pragma once

#include "headlight/typed_attention.h"
#include "headlight/typed_attention_backward.h"

namespace headlight::python {

// attention(), which must not hold a null pointer for an operand. Not cut are calls with dropout, which draws by the
// number of row and head; packed sequences, and lists of rows whose probabilities are asked for, between heads alone.
void attend_in_slices(Engine& engine, const AttentionOperands& operands, const AttentionOptions& options);

// attention_backward(), cut between samples and between key/value heads alone, for the gradients of a head's keys are
// sums over all of its rows. Not cut either where a bias or sinks sum over samples or heads.
void attend_backward_in_slices(Engine& engine, const AttentionBackwardOperands& operands,
                               const TypedAttentionGradients& gradients, const AttentionOptions& options);

}  // namespace headlight::python
