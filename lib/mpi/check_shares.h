// What a rank gives of its own: shapes as plan() says, and outputs apart from all else.
#pragma once

#include <string_view>

#include "mpi/call.h"

namespace headlight::mpi {

void check_shares(std::string_view operation, const Call& call, const AttentionOperands& shares,
                  const AttentionOptions& options);

struct BackwardShares {
  View<const float, 4> query;
  View<const float, 4> key;
  View<const float, 4> value;
  View<const float, 4> out;
  View<const float, 3> log_sum_exp;
  View<const float, 4> out_gradient;
  Gradients gradients;
};
void check_backward_shares(std::string_view operation, const Call& call, const BackwardShares& shares,
                           const AttentionOptions& options);

}  // namespace headlight::mpi
