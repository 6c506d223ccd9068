// Query rows that are gone through once more for those who ask to see their scores or probabilities.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "ops/attention/rows.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {

// options.scores, of a call whose options ask for them.
void write_scores(Engine& engine, const AttentionCall& call) noexcept;

// options.probabilities, from the final row states that the first pass has left behind: exactly exp(score −
// log_sum_exp), zeros where a key is masked. Scores are worked out again; no memory beyond the call's scratch.
void write_probabilities(Engine& engine, const AttentionCall& call) noexcept;

inline constexpr int kMaxRowsOfTile = 32;

// Rows [first, last) of a sample, in the order asked; none named: in their own.
struct ShownRows {
  std::int64_t sample;
  std::int64_t first;
  std::int64_t last;
  std::span<const std::int64_t> asked;

  [[nodiscard]] std::int64_t count() const noexcept { return last - first; }
  [[nodiscard]] std::int64_t query(std::int64_t r) const noexcept {
    return asked.empty() ? first + r : asked[static_cast<std::size_t>(first + r)];
  }
};

// Each row's visible keys, counted in the tensor, into the worker's memory.
void find_intervals(const AttentionCall& call, int worker, const ShownRows& rows) noexcept;

// And its query and modifiers for one head.
void take_head(const AttentionCall& call, int worker, const ShownRows& rows, std::int64_t head) noexcept;

// f(rows, first key, last key, worker) for every unit of rows of a sample and keys: the blocks of the plan, or all keys
// at once.
template <class Function>
void for_shown_rows(Engine& engine, const AttentionCall& call, std::span<const std::int64_t> asked, bool all_keys,
                    Function f) noexcept {
  // A panel of keys is packed once for that many rows; a worker's memory holds what row_block rows need.
  constexpr std::int64_t kRows = 48;
  const std::int64_t at_once = std::min(kRows, call.plan.row_block);
  const std::int64_t count = asked.empty() ? call.sizes.query_length : static_cast<std::int64_t>(asked.size());
  const std::int64_t row_blocks = divide_up(count, at_once);
  const std::int64_t key_blocks = all_keys ? 1 : call.plan.key_blocks;
  runtime::parallel_for(engine, call.sizes.batch * row_blocks * key_blocks, call.plan.workers,
                        [&](std::int64_t task, int worker) {
                          const std::int64_t first_key = task % key_blocks * call.plan.key_block;
                          const std::int64_t block = task / key_blocks;
                          const std::int64_t first = block % row_blocks * at_once;
                          f(ShownRows{block / row_blocks, first, std::min(first + at_once, count), asked}, first_key,
                            std::min(first_key + call.plan.key_block, call.sizes.key_length), worker);
                        });
}

}  // namespace headlight::ops
