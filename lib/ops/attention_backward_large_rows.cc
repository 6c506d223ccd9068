#include "ops/attention_backward_large_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/attention_rows.h"

namespace headlight::ops {
namespace {

// The row's scores in units of log 2, rounded as the kernels round them.
class LargeScores {
 public:
  LargeScores(const BackwardCall& call, const AttentionSequence& sequence, std::int64_t sample, std::int64_t head,
              std::int64_t row) noexcept
      : call_(call),
        sequence_(sequence),
        sample_(sample),
        key_head_(head / call.sizes.group),
        query_(&call.query(sample, sequence.first_query + row, head, 0)) {
    const std::int64_t query = sequence.first_query + row;
    if (call.options.mask) mask_ = broadcast_row(call.options.mask->entries, sample, head, query);
    if (call.options.bias) bias_ = broadcast_row(call.options.bias, sample, head, query);
    set_mask_strides(call.options, strides_);
  }

  [[nodiscard]] bool sees(std::int64_t j) const noexcept {
    return mask_ == nullptr || (mask_[(sequence_.first_key + j) * strides_.mask_key_stride] != 0) == strides_.attend;
  }
  [[nodiscard]] float operator()(std::int64_t j) const noexcept {
    constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
    const std::int64_t key = sequence_.first_key + j;
    const float* const numbers = call_.keys.block(sample_, key_head_, key, 1).key.floats();
    double score = 0;
    for (std::int64_t d = 0; d < call_.sizes.head_dim; ++d) {
      score += static_cast<double>(query_[d]) * static_cast<double>(numbers[d]);
    }
    if (bias_ == nullptr) {
      score = static_cast<double>(static_cast<float>(score)) * static_cast<double>(call_.exponent_scale);
    } else {
      score = score * static_cast<double>(call_.scale) + static_cast<double>(bias_[key * strides_.bias_key_stride]);
      score = static_cast<double>(static_cast<float>(score)) * std::numbers::log2e;
    }
    return static_cast<float>(std::isinf(score) ? score : std::clamp(score, -kLargest, kLargest));
  }

 private:
  const BackwardCall& call_;
  const AttentionSequence& sequence_;
  std::int64_t sample_;
  std::int64_t key_head_;
  const float* query_;
  const std::uint8_t* mask_ = nullptr;
  const float* bias_ = nullptr;
  kernels::AttentionRowMasks strides_{};
};

}  // namespace

LargeRow large_row(const BackwardCall& call, const AttentionSequence& sequence, std::int64_t sample, std::int64_t head,
                   std::int64_t row) noexcept {
  const KeyInterval interval = IntervalRule(call.options, sequence)(row);
  const LargeScores scores(call, sequence, sample, head, row);
  float maximum = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = interval.begin; j < interval.end; ++j) {
    if (scores.sees(j)) maximum = std::max(maximum, scores(j));
  }
  double sum = 0;
  for (std::int64_t j = interval.begin; j < interval.end; ++j) {
    if (scores.sees(j)) sum += std::exp2(static_cast<double>(scores(j)) - static_cast<double>(maximum));
  }
  return {maximum, static_cast<float>(std::log2(sum))};
}

}  // namespace headlight::ops
