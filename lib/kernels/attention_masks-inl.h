// Masks that are not intervals: applied to a row's scores in one pass, which finds the row's maximum too.
#pragma once

#include "kernels/attention_kernels.h"
#include "kernels/attention_softmax-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE bool has_masks(const kernels::AttentionRowMasks& masks) {
  return masks.bias != nullptr || masks.mask != nullptr;
}

// With a bias the scores are scaled before it is added, and are in units of e afterwards, as it is: of a change of unit
// nothing can become infinite (a row whose every key carries −FLT_MAX still sees them all), and it is one multiply-add.
HEADLIGHT_INLINE float natural_scale(float exponent_scale) {
  constexpr double kLog2e = 1.44269504088896340736;
  return static_cast<float>(static_cast<double>(exponent_scale) / kLog2e);
}
// What turns masked scores into units of log 2.
HEADLIGHT_INLINE float scale_after_masks(const kernels::AttentionRowMasks& masks, float exponent_scale) {
  return masks.bias != nullptr ? kLog2E : exponent_scale;
}

// One row's masks as its vectors of keys see them.
struct MaskRow {
  const std::uint8_t* mask;  // of the block's first key
  std::int64_t mask_stride;
  bool attend;
  const float* bias;
  std::int64_t bias_stride;
  Vec scale;
};

// Keys j … j + kLanes − 1, of which the row sees those in [begin, end); the others may not be read.
template <bool kMask, bool kBias>
HEADLIGHT_INLINE Vec masked_score(const MaskRow& row, std::int64_t j, Vec score) {
  if constexpr (kBias) {
    score = fma(score, row.scale, row.bias_stride == 0 ? broadcast(*row.bias) : load(row.bias + j));
  }
  if constexpr (kMask) {
    const Vec nothing = broadcast(-kInfinity);
    if (row.mask_stride == 0) return (*row.mask != 0) == row.attend ? score : nothing;
    const Mask set = bytes_not_zero(row.mask + j);
    return row.attend ? select(set, score, nothing) : select(set, nothing, score);
  }
  return score;
}

// The same where the row sees only the keys [begin, end) of the vector: the others may not be read, and become −inf.
template <bool kMask, bool kBias>
inline Vec masked_edge(const MaskRow& row, std::int64_t j, std::int64_t begin, std::int64_t end, Vec score) {
  std::uint8_t mask[kLanes] = {};
  float bias[kLanes] = {};
  for (std::int64_t key = begin; key < end; ++key) {
    if constexpr (kMask) mask[key - j] = row.mask[key * row.mask_stride];
    if constexpr (kBias) bias[key - j] = row.bias[key * row.bias_stride];
  }
  const MaskRow copy{mask, 1, row.attend, bias, 1, row.scale};
  const Vec masked = masked_score<kMask, kBias>(copy, 0, score);
  const Vec nothing = broadcast(-kInfinity);
  return select(mask_first(static_cast<int>(begin - j)), nothing,
                select(mask_first(static_cast<int>(end - j)), masked, nothing));
}

template <bool kMask, bool kBias>
Vec mask_row(const MaskRow& row, std::int64_t begin, std::int64_t end, float* scores) {
  Vec maximum = broadcast(-kInfinity);
  const VectorRange range = vectors_of(begin, end);
  for (std::int64_t v = range.begin; v < range.end; ++v) {
    const std::int64_t j = v * kLanes;
    const Vec score = load(scores + j);
    const Vec masked = begin <= j && j + kLanes <= end
                           ? masked_score<kMask, kBias>(row, j, score)
                           : masked_edge<kMask, kBias>(row, j, larger(begin, j), smaller(end, j + kLanes), score);
    store(masked, scores + j);
    maximum = max(masked, maximum);
  }
  return maximum;
}

// Masks the scores of row r, which sees the keys begin … end − 1 > begin of the block that starts at key first_key of
// the masks: −inf where a key is hidden, in units of e where there is a bias. Returns the greatest of each lane.
inline Vec apply_masks(const kernels::AttentionRowMasks& masks, std::int64_t r, std::int64_t first_key,
                       std::int64_t begin, std::int64_t end, float exponent_scale, float* scores) {
  MaskRow row{nullptr, masks.mask_key_stride, masks.attend,
              nullptr, masks.bias_key_stride, broadcast(natural_scale(exponent_scale))};
  if (masks.mask != nullptr) row.mask = masks.mask[r] + first_key * masks.mask_key_stride;
  if (masks.bias != nullptr) row.bias = masks.bias[r] + first_key * masks.bias_key_stride;
  if (masks.bias == nullptr) return mask_row<true, false>(row, begin, end, scores);
  return masks.mask == nullptr ? mask_row<false, true>(row, begin, end, scores)
                               : mask_row<true, true>(row, begin, end, scores);
}

}  // namespace headlight::HEADLIGHT_TARGET
