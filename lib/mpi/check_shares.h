// What a rank gives of its own: shapes as plan() says, and outputs apart from all else.
#pragma once

#include <string_view>

#include "mpi/call.h"
#include "ops/attention/operands.h"
#include "ops/attention_backward/operands.h"

namespace headlight::mpi {

void check_shares(std::string_view operation, const Call& call, const ops::AttentionOperands& shares,
                  const AttentionOptions& options);

void check_backward_shares(std::string_view operation, const Call& call, const ops::AttentionBackwardOperands& shares,
                           const Gradients& gradients, const AttentionOptions& options);

}  // namespace headlight::mpi
