#include "ops/attention/row_scores.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "ops/attention/scale.h"
#include "ops/attention/score_modifiers.h"
#include "ops/rows/typed.h"

namespace headlight::ops {

RowScores::RowScores(const AttentionOptions& options, const kernels::ScoreModifiers& modifiers, const KeySource& keys,
                     const RowOfQueries& row) noexcept
    : options_(options), modifiers_(modifiers), keys_(keys), row_(row) {
  if (options.mask) mask_ = broadcast_row(options.mask->entries, row.sample, row.head, row.row);
  if (options.bias) bias_ = broadcast_row(options.bias, row.sample, row.head, row.row);
}

bool RowScores::sees(std::int64_t key) const noexcept {
  return mask_ == nullptr || (mask_[key * modifiers_.masks.mask_key_stride] != 0) == modifiers_.masks.attend;
}

float RowScores::operator()(std::int64_t key) const noexcept {
  const kernels::Operand numbers = keys_.block(row_.sample, row_.key_value_head, key, 1).key;
  double score = 0;
  for (std::int64_t d = 0; d < row_.head_dim; ++d) {
    score += static_cast<double>(number_of(row_.query, d)) * static_cast<double>(number_of(numbers, d));
  }
  const bool adds = bias_ != nullptr || !options_.alibi.empty();
  if (options_.softcap != 0) {
    score = std::tanh(score * static_cast<double>(modifiers_.cap.scale)) * static_cast<double>(modifiers_.cap.cap);
  } else if (adds) {
    score *= static_cast<double>(static_cast<float>(softmax_scale(options_, row_.head_dim)));
  }
  if (bias_ != nullptr) score += static_cast<double>(bias_[key * modifiers_.masks.bias_key_stride]);
  if (!options_.alibi.empty()) {
    score -= static_cast<double>(options_.alibi[static_cast<std::size_t>(row_.head)]) *
             static_cast<double>(std::abs(row_.position - key));
  }
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  score = static_cast<double>(static_cast<float>(score)) *
          (adds ? std::numbers::log2e : static_cast<double>(modifiers_.exponent_scale));
  return static_cast<float>(std::isinf(score) ? score : std::clamp(score, -kLargest, kLargest));
}

}  // namespace headlight::ops
