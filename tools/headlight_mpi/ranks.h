// What the commands of headlight-mpi have in common.
#pragma once

#include <memory>
#include <string>

#include "headlight/mpi.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/command.h"

namespace headlight::program {

// For how long a rank is waited for, as an option.
struct TimeoutArgument {
  double seconds = 60;

  void add_to(Command& command);
  [[nodiscard]] mpi::GroupOptions group() const;
};

// How a call is spread, and how long a rank is waited for.
struct RankArguments {
  int head_ranks = 0;
  std::int64_t block = 0;
  TimeoutArgument timeout;

  void add_to(Command& command);
  [[nodiscard]] mpi::Spread spread() const { return {.head_ranks = head_ranks, .block = block}; }
  [[nodiscard]] mpi::GroupOptions group() const { return timeout.group(); }
};

[[nodiscard]] std::shared_ptr<TrainingRanks> training_ranks();
[[nodiscard]] std::shared_ptr<AttentionCalls> calls_over_ranks();
void add_study_scale(Command& study);

}  // namespace headlight::program
