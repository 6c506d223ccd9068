// Compiled once per instruction set.
#include "kernels/attention/kernels.h"

#include "kernels/attention/block-inl.h"
#include "kernels/attention/float_kernels.h"
#include "kernels/attention/probabilities-inl.h"
#include "kernels/attention/short-inl.h"
#include "kernels/attention/sweep-inl.h"
#include "kernels/attention/typed_rows-inl.h"
#include "kernels/rows/sweep-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

float finish_float32(const kernels::AttentionState& state, std::int64_t value_dim, NumberType, void* out) noexcept {
  return finish<StoredFloat32>(state, value_dim, static_cast<float*>(out));
}

void copy_float32_rows(const kernels::Operand& from, float factor, std::int64_t rows, std::int64_t columns,
                       float* to) noexcept {
  scaled_rows<StoredFloat32>(from, factor, rows, columns, to);
}

}  // namespace

void attend_float_block(const kernels::AttentionBlock& block) noexcept { attend_block(block); }
void attend_short_floats(const kernels::AttentionShort& head) noexcept { attend_short_of<ShortFloats>(head); }
void float_probabilities(const kernels::ProbabilityTile& tile) noexcept {
  probability_tile<PanelScores<TileVectors>>(tile);
}
void float_scores(const kernels::ScoreTile& tile) noexcept { score_tile<PanelScores<TileVectors>>(tile); }

extern const kernels::AttentionKernels attention_kernels;
const kernels::AttentionKernels attention_kernels = {
    .lanes = kLanes,
    .query_rows = kBlockRows,
    .call_rows = kBlockRows,
    .call_blocks = 1,
    .key_block = 0,
    .key_panel = kKeyPanel,
    .value_panel = kValuePanel,
    .wide_rows = kWideRows,
    .wide_columns = kWideVectors * kLanes,
    .asks_one_by_one = kAsksOneByOne<StoredFloat32>,
    .sweep_rows = kSweepTiles * kBlockRows,
    .narrow_sweep_rows = kNarrowSweepRows,
    .sweeps_parts = true,
    .short_rows = kShortRows,
    .short_keys = kShortKeys,
    .numbers_of_word = 1,
    .words_at_once = 1,
    .keys_at_once = 1,
    .attend_block = attend_float_block,
    .attend_sweep = attend_sweep,
    .attend_short = attend_short_floats,
    .probability_tile = float_probabilities,
    .score_tile = float_scores,
    .modify_row = modify_row,
    .merge = merge,
    .finish = finish_float32,
    .pack_keys = pack_keys<StoredFloat32>,
    .pack_values = pack_values<StoredFloat32>,
    .copy_rows = copy_float32_rows,
    .drop_weights = drop_weights_of_sequence,
    .all_finite = all_finite<StoredFloat32>,
    .narrow_rows = nullptr,
};

}  // namespace headlight::HEADLIGHT_TARGET
