// How a call of attention_backward() is cut into units, and how much scratch memory they take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headlight/engine.h"
#include "kernels/kernels.h"
#include "ops/attention_check.h"

namespace headlight::ops {

// Byte offsets into one worker's scratch memory.
struct BackwardWorkerScratch {
  std::size_t query;
  std::size_t out_gradient;
  std::size_t minus_log_sum_exp;
  std::size_t large_maximum;
  std::size_t begin;
  std::size_t end;
  std::size_t row_masks;
  std::size_t row_biases;
  std::size_t row_slopes;
  std::size_t cap_derivatives;
  std::size_t weights;
  std::size_t score_gradients;
  std::size_t key_panels;
  std::size_t value_panels;
  std::size_t key;
  std::size_t key_gradient;
  std::size_t value_gradient;
  std::size_t bias_sums;
  std::size_t bytes;
};

// A unit is (sample, key/value head, block of keys): it walks the query heads of its group and the blocks of their rows
// in ascending order. Blocks lie on absolute grids within each sequence, and their sizes hang on the head dims alone:
// gradients are sums over blocks, so these are part of their bits.
struct BackwardPlan {
  int workers;
  std::int64_t query_block;
  std::int64_t key_block;
  std::int64_t key_blocks;  // ⌈Lk / key_block⌉
  std::int64_t padded_head_dim;
  std::int64_t padded_value_dim;
  std::int64_t stride;  // of weights and score gradients
  BackwardWorkerScratch worker;

  // Byte offsets into the call's scratch memory.
  std::size_t workers_begin;
  std::size_t delta;     // [B · Hq · Lq]
  std::size_t progress;  // [B · Hkv · key_blocks]
  std::size_t bytes;
};

[[nodiscard]] BackwardPlan plan_attention_backward(const Engine& engine, const kernels::AttentionKernels& kernels,
                                                   const AttentionSizes& sizes) noexcept;

}  // namespace headlight::ops
