// What a rank gives of its own: shapes as plan() says, and outputs apart from all else.
#pragma once

#include <cstdint>
#include <string_view>

#include "mpi/call.h"
#include "ops/attention/operands.h"
#include "ops/attention_backward/operands.h"

namespace headlight::mpi {

void check_shares(std::string_view operation, const Call& call, const ops::AttentionOperands& shares,
                  const AttentionOptions& options);

void check_backward_shares(std::string_view operation, const Call& call, const ops::AttentionBackwardOperands& shares,
                           const Gradients& gradients, const AttentionOptions& options);

// Of a bias that tells distances alone its gradient, of so many shards [shards, Hq, Lq + Lk − 1].
void check_distance_shares(std::string_view operation, const Call& call, const ops::AttentionBackwardOperands& shares,
                           std::int64_t shards, const View<float, 3>& distances, const AttentionOptions& options);

}  // namespace headlight::mpi
