// Which faults there are, and how one is set up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "faults/board.h"

namespace headlight::faults {

// A row of the table that the drivers print.
struct Plan {
  const char* name;
  Kind kind;
  Effect effect;
  int number;  // errno, or the signal
  bool lasts;  // from the n-th call on, rather than that one alone
};

// Those of calls that fail, are cut short or interrupted; and signals.
[[nodiscard]] std::span<const Plan> failures() noexcept;
[[nodiscard]] std::span<const Plan> signals() noexcept;

// The n-th call, counted from 0, of what the process does from now on.
void arm(Board& board, const Plan& plan, std::int64_t n) noexcept;
// Nothing fails any more. Returns how many calls were met.
std::int64_t disarm(Board& board) noexcept;

// How many calls the plan could meet of those that were seen.
[[nodiscard]] std::int64_t seen(const Board& board, const Plan& plan) noexcept;
void forget_seen(Board& board) noexcept;

// 0 … count − 1, or `most` of them from the first to the last.
[[nodiscard]] std::vector<std::int64_t> spread(std::int64_t count, std::int64_t most);

}  // namespace headlight::faults
