// A few rows of several heads over tile registers, against keys and values read once and where they lie: the bits of
// attend_tiles().
//
// Memory is the limit, so the tiles of each iteration run between the loads of the next one: a core that stops loading
// for as long as memory takes to answer has nothing on its way afterwards.
#pragma once

#include "kernels/attention/amx_sweep_scores-inl.h"
#include "kernels/attention/amx_sweep_values-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// attend_sweep().
inline void sweep_tiles(const kernels::AttentionSweep& sweep) noexcept {
  AmxRegisters registers;
  const BlockRange range = range_of_sweep(sweep);
  const IterationRange iterations = iterations_of(range);
  score_key_iterations(sweep, iterations, registers);
  RowFactors factors[kernels::kMaxSweepHeads];
  for (std::int64_t head = 0; head < sweep.heads; ++head) {
    factors[head] = weigh_tile_rows(block_of(sweep, head), range, iterations);
  }
  if (sweep.block.keys.values_not_finite) {
    for (std::int64_t head = 0; head < sweep.heads; ++head) {
      values_exactly(block_of(sweep, head), factors[head], iterations, registers);
    }
    return;
  }
  ValueSweep(sweep, iterations, registers).run();
  for (std::int64_t head = 0; head < sweep.heads; ++head) {
    const kernels::AttentionBlock block = block_of(sweep, head);
    float* const sums = value_sums_of(sweep, head);
    order_columns(block, sums);
    merge_values(block, factors[head], sums);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
