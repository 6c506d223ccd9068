// What a call over ranks costs: bytes that come and leave, and operations.
#pragma once

#include "headlight/mpi.h"
#include "ops/attention/check.h"

namespace headlight::mpi {

// Of one rank.
struct Cost {
  double hidden_bytes;     // that come while it computes
  double sent_bytes;       // that are sent one behind the other meanwhile, down the trees of all blocks
  double exchanged_bytes;  // that it waits for
  double flops;
  [[nodiscard]] double seconds(const Spread& spread) const noexcept;
};
[[nodiscard]] Cost forward_cost(const ops::AttentionSizes& whole, const AttentionOptions& options, int ring,
                                int head_ranks, const Spread& spread);
[[nodiscard]] Cost backward_cost(const ops::AttentionSizes& whole, const AttentionOptions& options, int ring,
                                 int head_ranks, const Spread& spread);

// Of the divisors that may share out the heads; of equals the smallest, which waits for nothing.
[[nodiscard]] int fastest_head_ranks(const ops::AttentionSizes& whole, const AttentionOptions& options, int ranks,
                                     const Spread& spread);

}  // namespace headlight::mpi
