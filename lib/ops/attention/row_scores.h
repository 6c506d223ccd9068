// The scores of one row by plain loops in float64, for rows that are rare.
#pragma once

#include <cstdint>

#include "headlight/attention.h"
#include "kernels/attention/kernels.h"
#include "ops/attention/key_source.h"

namespace headlight::ops {

// A query row of the tensors.
struct RowOfQueries {
  kernels::Operand query;  // [head_dim]
  std::int64_t head_dim;
  std::int64_t sample;
  std::int64_t head;
  std::int64_t key_value_head;
  std::int64_t row;       // in the tensor
  std::int64_t position;  // counted in the tensor's keys
};

class RowScores {
 public:
  RowScores(const AttentionOptions& options, const kernels::ScoreModifiers& modifiers, const KeySource& keys,
            const RowOfQueries& row) noexcept;

  // Whether the mask lets key `key` of the tensor through.
  [[nodiscard]] bool sees(std::int64_t key) const noexcept;
  // Its score in units of log 2, as a float where the kernels have one.
  [[nodiscard]] float operator()(std::int64_t key) const noexcept;

 private:
  const AttentionOptions& options_;
  const kernels::ScoreModifiers& modifiers_;
  const KeySource& keys_;
  RowOfQueries row_;
  const std::uint8_t* mask_ = nullptr;
  const float* bias_ = nullptr;
};

}  // namespace headlight::ops
