// How a call of attention_backward() is cut into units, and how much scratch memory they take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headlight/engine.h"
#include "kernels/kernels.h"
#include "ops/attention_check.h"
#include "runtime/parallel.h"

namespace headlight::ops {

// Of one worker's scratch memory.
struct BackwardWorkerScratch {
  runtime::ScratchPart<float> query;
  runtime::ScratchPart<float> out_gradient;
  runtime::ScratchPart<float> minus_log_sum_exp;
  runtime::ScratchPart<float> large_maximum;
  runtime::ScratchPart<std::int32_t> begin;
  runtime::ScratchPart<std::int32_t> end;
  runtime::ScratchPart<const std::uint8_t*> row_masks;
  runtime::ScratchPart<const float*> row_biases;
  runtime::ScratchPart<kernels::RowSlope> row_slopes;
  runtime::ScratchPart<float> cap_derivatives;
  runtime::ScratchPart<float> weights;
  runtime::ScratchPart<float> score_gradients;
  runtime::ScratchPart<float> key_panels;
  runtime::ScratchPart<float> value_panels;
  runtime::ScratchPart<float> key;
  runtime::ScratchPart<float> key_gradient;
  runtime::ScratchPart<float> value_gradient;
  runtime::ScratchPart<float> bias_sums;
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

  // Of the call's scratch memory.
  runtime::ScratchPart<std::byte> workers_begin;
  runtime::ScratchPart<float> delta;            // [B · Hq · Lq]
  runtime::ScratchPart<std::int64_t> progress;  // [B · Hkv · key_blocks]
  std::size_t bytes;
};

[[nodiscard]] BackwardPlan plan_attention_backward(const Engine& engine, const kernels::AttentionKernels& kernels,
                                                   const AttentionSizes& sizes) noexcept;

}  // namespace headlight::ops
