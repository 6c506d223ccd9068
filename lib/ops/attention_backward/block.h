// One block of keys and the blocks of query rows that it meets: from checked views to tiles of the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "ops/attention/head_numbers.h"
#include "ops/attention/key_source.h"
#include "ops/attention/masks.h"
#include "ops/attention/score_modifiers.h"
#include "ops/attention_backward/operands.h"
#include "ops/attention_backward/plan.h"
#include "ops/attention_backward/row_sums.h"
#include "ops/call_plan.h"
#include "ops/rows/typed.h"

namespace headlight::ops {

// One checked call.
struct BackwardCall {
  const AttentionBackwardOperands& operands;
  KeySource keys;
  const TypedAttentionGradients& gradients;
  const AttentionOptions& options;
  AttentionSizes sizes;
  AttentionSequences sequences;
  const kernels::AttentionKernels& kernels;
  const kernels::AttentionBackwardKernels& backward;
  BackwardPlan plan;
  float scale;
  kernels::ScoreModifiers modifiers;
  kernels::AttentionDropout dropout;
  HeadNumbers heads;
  std::byte* scratch;
  float* deltas;                      // [B · Hq · Lq]
  kernels::RunningSum* running_sums;  // [B · Hq · Lq], set of large rows (large_rows.h); null: there are none
  RowSums sums;
  float* narrow_sums;  // of a query gradient of 16 bits: [B · Hq · Lq][padded head_dim]; null where it is of floats

  [[nodiscard]] bool multiplies_pairs() const noexcept { return kernels.numbers_of_word == 2; }
  [[nodiscard]] bool multiplies_tiles() const noexcept { return kernels.keys_at_once > 1; }
  // See BackwardTile.
  [[nodiscard]] bool takes_keys_as_rows() const noexcept {
    return multiplies_tiles() && modifiers.asked == 0 && options.dropout.probability == 0;
  }

  // Where a row's query gradient is added up, and the distance to the next row's: in place where that is of floats.
  [[nodiscard]] kernels::Rows<float> query_sums(std::int64_t sample, std::int64_t head,
                                                std::int64_t query) const noexcept {
    if (narrow_sums != nullptr) {
      const std::int64_t row = (sample * sizes.query_heads + head) * sizes.query_length + query;
      return {narrow_sums + row * plan.padded_head_dim, plan.padded_head_dim};
    }
    return {static_cast<float*>(row_at(gradients.query, sample, query, head)),
            sizes.query_length > 1 ? gradients.query.stride(1) : 0};
  }

  [[nodiscard]] float* delta(std::int64_t sample, std::int64_t head) const noexcept {
    return deltas + (sample * sizes.query_heads + head) * sizes.query_length;
  }
  [[nodiscard]] kernels::RunningSum* running_sums_of(std::int64_t sample, std::int64_t head) const noexcept {
    return running_sums + (sample * sizes.query_heads + head) * sizes.query_length;
  }
};

// Its scale and modifiers, from its options.
void set_scale(BackwardCall& call) noexcept;

class BackwardBlock {
 public:
  // Keys [first_key, first_key + keys) of a sequence, at most key_block of them; packs them in the worker's memory.
  BackwardBlock(const BackwardCall& call, int worker, std::int64_t sample, std::int64_t key_value_head,
                const AttentionSequence& sequence, std::int64_t first_key, std::int64_t keys) noexcept;

  // The rows of the sequence outside [first, last) see none of the keys.
  [[nodiscard]] RowInterval rows() const noexcept { return rule_.rows_that_see(first_key_, first_key_ + tile_.keys); }

  // Makes `rows` rows of a query head from the sequence's first_row on the tile's rows, at most query_block of them;
  // false where none of them sees a key.
  bool take_rows(std::int64_t head, std::int64_t first_row, std::int64_t rows) noexcept;

  [[nodiscard]] kernels::BackwardTile& tile() noexcept { return tile_; }

 private:
  bool find_intervals(std::int64_t first_row, std::int64_t rows) noexcept;
  void take_log_sum_exp(std::int64_t head, std::int64_t first_row) noexcept;
  void take_modifiers(std::int64_t head, std::int64_t first_row) noexcept;
  // The tile's rows of a tensor, as both kinds of products take them.
  void bring_rows(const kernels::Operand& from, std::int64_t dim, std::int64_t padded, float* to,
                  const float*& of_scores, const float*& of_sums) noexcept;
  void bring_keys(const kernels::Operand& from, std::int64_t dim, float* to) const noexcept;
  // Rows of words, filled up to what tile registers take at once.
  void copy_words(const kernels::Operand& from, std::int64_t rows, std::int64_t dim, float* to) const noexcept;
  [[nodiscard]] bool all_finite(const kernels::Operand& query, const kernels::Operand& out_gradient) noexcept;

  const BackwardCall& call_;
  int worker_;
  std::int64_t sample_;
  AttentionSequence sequence_;
  std::int64_t first_key_;
  kernels::Operand key_;
  IntervalRule rule_;
  kernels::BackwardTile tile_{};
  enum class Finite : std::uint8_t { unknown, yes, no } keys_finite_ = Finite::unknown;
};

}  // namespace headlight::ops
