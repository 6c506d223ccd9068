// Compiled once per instruction set.
#include "kernels/attention_kernels.h"

#include "kernels/attention_block-inl.h"
#include "kernels/attention_probabilities-inl.h"
#include "kernels/attention_short-inl.h"
#include "kernels/attention_sweep-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

void attend_block_entry(const kernels::AttentionBlock& block) noexcept { attend_block(block); }

void attend_sweep_entry(const kernels::AttentionSweep& sweep) noexcept { attend_sweep(sweep); }

void attend_short_entry(const kernels::AttentionShort& head) noexcept { attend_short(head); }

void probability_tile_entry(const kernels::ProbabilityTile& tile) noexcept { probability_tile(tile); }

void score_tile_entry(const kernels::ScoreTile& tile) noexcept { write_scores(tile); }

void step_row_entry(const kernels::ScoreSteps& steps, std::int64_t keys, float factor, float* scores,
                    float* cap_derivatives) noexcept {
  step_row(steps, keys, factor, scores, cap_derivatives);
}

void merge_entry(const kernels::AttentionState& to, const kernels::AttentionState& from,
                 std::int64_t value_dim) noexcept {
  merge(to, from, value_dim);
}

float finish_entry(const kernels::AttentionState& state, std::int64_t value_dim, float* out) noexcept {
  return finish(state, value_dim, out);
}

void pack_keys_entry(const kernels::Operand& key, std::int64_t keys, std::int64_t head_dim, float* panels) noexcept {
  pack_keys(key.floats(), key.stride, keys, head_dim, panels);
}

void pack_values_entry(const kernels::Operand& value, std::int64_t keys, std::int64_t value_dim, float* panels,
                       std::int64_t panel_stride) noexcept {
  pack_values(value.floats(), value.stride, keys, value_dim, panels, panel_stride);
}

void copy_row_entry(const float* from, std::int64_t count, float factor, float* to) noexcept {
  copy_row(from, count, factor, to);
}

void drop_weights_entry(const kernels::AttentionDropout& dropout, const kernels::DropoutPlace& place, std::int64_t keys,
                        float* weights) noexcept {
  drop_weights(dropout, place, 0, 0, keys, weights);
}

bool all_finite_entry(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t columns) noexcept {
  return all_finite(from, stride, rows, columns);
}

}  // namespace

extern const kernels::AttentionKernels attention_kernels;
const kernels::AttentionKernels attention_kernels = {
    .lanes = kLanes,
    .query_rows = kBlockRows,
    .key_panel = kKeyPanel,
    .value_panel = kValuePanel,
    .short_rows = kShortRows,
    .short_keys = kShortKeys,
    .attend_block = attend_block_entry,
    .attend_sweep = attend_sweep_entry,
    .attend_short = attend_short_entry,
    .probability_tile = probability_tile_entry,
    .score_tile = score_tile_entry,
    .step_row = step_row_entry,
    .merge = merge_entry,
    .finish = finish_entry,
    .pack_keys = pack_keys_entry,
    .pack_values = pack_values_entry,
    .copy_row = copy_row_entry,
    .drop_weights = drop_weights_entry,
    .all_finite = all_finite_entry,
};

}  // namespace headlight::HEADLIGHT_TARGET
