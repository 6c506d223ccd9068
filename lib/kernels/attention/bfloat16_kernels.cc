// Compiled once per feature that multiplies bfloat16: attention over pairs of such numbers.
#include "kernels/attention/kernels.h"
#include "kernels/attention/pairs-inl.h"
#include "kernels/attention/pairs_short-inl.h"
#include "kernels/attention/probabilities-inl.h"
#include "kernels/attention/sweep-inl.h"
#include "kernels/attention/typed_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

void attend_pairs(const kernels::AttentionBlock& block) noexcept {
  BlockRows rows;
  const RowFactors factors = weigh_keys<KeyPairs, PairWeights>(block, rows);
  if (block.dropout.numbers != nullptr) pair_weights(block);
  if (wants_exact_values(block)) {
    pair_values_exactly(block, factors);
  } else {
    block_values<PairValues>(block, factors);
  }
}

void sweep_pairs(const kernels::AttentionSweep& sweep) noexcept {
  const BlockRange range = range_of_sweep(sweep);
  sweep_scores<PairsOfBFloat16>(sweep, range);
  RowFactors factors[kernels::kMaxSweepHeads];
  weigh_heads(sweep, range, factors);
  for (std::int64_t head = 0; head < sweep.heads; ++head) pair_weights(block_of(sweep, head));
  if (!wants_exact_values(sweep.block)) return sweep_values<PairsOfBFloat16>(sweep, range, factors);
  for (std::int64_t head = 0; head < sweep.heads; ++head) pair_values_exactly(block_of(sweep, head), factors[head]);
}

}  // namespace

extern const kernels::AttentionKernels pair_attention_kernels;
const kernels::AttentionKernels pair_attention_kernels = {
    .lanes = kLanes,
    .query_rows = kBlockRows,
    .call_rows = kBlockRows,
    .call_blocks = 1,
    .key_block = 0,
    .key_panel = kKeyPanel,
    .value_panel = kValuePanel,
    .wide_rows = kWideRows,
    .wide_columns = kWideVectors * kLanes,
    .asks_one_by_one = false,
    .sweep_rows = kSweepTiles * kBlockRows,
    .narrow_sweep_rows = kNarrowSweepRows,
    .sweeps_parts = true,
    .short_rows = kShortRows,
    .short_keys = kShortKeys,
    .numbers_of_word = 2,
    .words_at_once = 1,
    .keys_at_once = 1,
    .attend_block = attend_pairs,
    .attend_sweep = sweep_pairs,
    .attend_short = attend_short_of<ShortPairs>,
    .probability_tile = probability_tile<PanelScores<KeyPairs>>,
    .score_tile = score_tile<PanelScores<KeyPairs>>,
    .modify_row = modify_row,
    .merge = merge,
    .finish = finish_typed,
    .pack_keys = pack_key_pairs,
    .pack_values = pack_value_pairs,
    .copy_rows = copy_pairs,
    .drop_weights = drop_weights_of_sequence,
    .all_finite = all_typed_finite,
    .narrow_rows = narrow_rows,
};

}  // namespace headlight::HEADLIGHT_TARGET
