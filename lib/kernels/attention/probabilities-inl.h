// Scores and softmax rows themselves, for those who ask to see them.
#pragma once

#include "kernels/attention/kernels.h"
#include "kernels/attention/score_modifiers-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/attention/softmax-inl.h"
#include "kernels/attention/values-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Products of at most kRows rows and a panel of at most kKeys keys by the tiles of vector registers: scores[r · kKeys +
// j]. Other tiles come with their own.
template <class Keys>
struct PanelScores {
  static constexpr int kRows = kBlockRows;
  static constexpr int kKeys = kKeyPanel;

  static void run(const kernels::QueryRows& query, const float* panel, std::int64_t keys, float* scores) noexcept {
    score_panel<Keys>({{query.data, query.stride}, {panel, keys}, query.head_dim, {scores, kKeys, nullptr}},
                      query.count, divide_up(keys, kLanes));
  }
};

template <class Scores>
void score_tile(const kernels::ScoreTile& tile) noexcept {
  float scores[Scores::kRows * Scores::kKeys];
  Scores::run(tile.query, tile.panel, tile.keys, scores);
  const Vec factor = broadcast(tile.factor);
  for (std::int64_t r = 0; r < tile.query.count; ++r) {
    float* row = scores + r * Scores::kKeys;
    const int begin = tile.seen.begin[r];
    const int end = tile.seen.end[r];
    if (begin < end && tile.modifiers.asked != 0) apply_modifiers(tile.modifiers, r, begin, end, row);
    for (int j = 0; j < tile.keys; j += kLanes) {
      const int hidden = static_cast<int>(larger(0, smaller(kLanes, begin - j)));
      const int visible = static_cast<int>(larger(0, smaller(kLanes, end - j)));
      const Vec nothing = broadcast(-kInfinity);
      const Vec score = select(mask_first(visible), mul(load(row + j), factor), nothing);
      store_lanes(select(mask_first(hidden), nothing, score), tile.rows[r] + j,
                  static_cast<int>(smaller(kLanes, tile.keys - j)));
    }
  }
}

template <class Scores>
void probability_tile(const kernels::ProbabilityTile& tile) noexcept {
  float scores[Scores::kRows * Scores::kKeys];
  bool sees_any = false;
  for (std::int64_t r = 0; r < tile.query.count; ++r) sees_any = sees_any || tile.seen.begin[r] < tile.seen.end[r];
  if (sees_any) Scores::run(tile.query, tile.panel, tile.keys, scores);
  const Vec scale = broadcast(tile.modifiers.exponent_scale);
  const Vec average_factor = broadcast(tile.average_factor);
  const Vec nothing = broadcast(-kInfinity);
  const Vec lowest = broadcast(tile.modifiers.may_be_low ? kLowestScore : -kInfinity);

  for (std::int64_t r = 0; r < tile.query.count; ++r) {
    float* row = scores + r * Scores::kKeys;
    const int begin = tile.seen.begin[r];
    const int end = tile.seen.end[r];
    if (begin < end && tile.modifiers.asked != 0) apply_modifiers(tile.modifiers, r, begin, end, row);
    const Vec minus_maximum = broadcast(-tile.maximum[r]);
    const bool large = is_large(tile.maximum[r]);
    const Vec factor = row_end(tile.sum[r]).inverse;
    for (int j = 0; j < tile.keys; j += kLanes) {
      const int count = static_cast<int>(smaller(kLanes, tile.keys - j));
      const int hidden = static_cast<int>(larger(0, smaller(kLanes, begin - j)));
      const int visible = static_cast<int>(larger(0, smaller(kLanes, end - j)));
      Vec p = zero();
      if (hidden < visible && tile.sum[r] != 0.0f) {
        // The power of a key that the row does not see, of any score, might overflow.
        const Vec before_end = select(mask_first(visible), load(row + j), nothing);
        const Vec score = select(mask_first(hidden), nothing, before_end);
        const Vec distance = large ? add(scaled_beside(score, scale, minus_maximum), minus_maximum)
                                   : fma(max(lowest, score), scale, minus_maximum);
        p = mul(exp2_nonpositive(distance), factor);
        // A masked key of a row that is NaN is still masked; a score of −inf that the row sees is not.
        p = select(mask_first(hidden), zero(), select(mask_first(visible), p, zero()));
        if (tile.modifiers.masks.mask != nullptr) p = select(equal(score, nothing), zero(), p);
      }
      if (tile.per_head != nullptr) store_lanes(p, tile.per_head[r] + j, count);
      if (tile.averaged == nullptr) continue;
      float* averaged = tile.averaged[r] + j;
      const Vec sum = tile.first_head ? p : add(load_lanes(averaged, count), p);
      store_lanes(mul(sum, average_factor), averaged, count);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
