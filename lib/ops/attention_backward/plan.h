// How a call of attention_backward() is cut into units, and how much scratch memory they take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headlight/engine.h"
#include "kernels/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/score_modifiers.h"
#include "ops/call_plan.h"
#include "runtime/inner_api.h"

namespace headlight::ops {

// A unit is (sample, key/value head, block of keys): it walks the query heads of its group and the blocks of their rows
// in ascending order. Blocks lie on absolute grids within each sequence, and their sizes hang on the head dims alone:
// gradients are sums over blocks, so these are part of their bits.
struct BackwardPlan : CallPlan {
  std::int64_t query_block;
  std::int64_t key_block;
  std::int64_t key_blocks;  // ⌈Lk / key_block⌉
  std::int64_t padded_head_dim;
  std::int64_t padded_value_dim;
  std::int64_t stride;  // of weights and score gradients

  WorkerPart<float> query;
  WorkerPart<float> out_gradient;
  WorkerPart<float> minus_log_sum_exp;
  WorkerPart<float> large_maximum;
  WorkerPart<std::int32_t> begin;
  WorkerPart<std::int32_t> end;
  ModifierParts row_modifiers;
  WorkerPart<float> cap_derivatives;
  WorkerPart<float> weights;
  WorkerPart<float> score_gradients;
  WorkerPart<float> room_of_tiles;
  WorkerPart<float> key_panels;
  WorkerPart<float> value_panels;
  WorkerPart<float> key;
  WorkerPart<float> key_gradient;
  WorkerPart<float> value_gradient;
  WorkerPart<float> bias_sums;

  runtime::ScratchPart<float> query_sums;  // of a narrow one: [B · Hq · Lq][padded head_dim], or nothing
  runtime::ScratchPart<float> delta;       // [B · Hq · Lq]
  runtime::ScratchPart<kernels::RunningSum> running_sums;  // of large rows (large_rows.h): [B · Hq · Lq], or nothing
  runtime::ScratchPart<std::int64_t> progress;             // [B · Hkv · key_blocks]
};

// For what a call has room beside what every call has. Ranks refuse large rows, and who asks for blocks alone needs
// neither.
struct BackwardRoom {
  bool query_sums = false;    // of a narrow query gradient
  bool running_sums = false;  // of large rows
};
[[nodiscard]] BackwardPlan plan_attention_backward(const Engine& engine, const kernels::AttentionKernels& kernels,
                                                   const AttentionSizes& sizes, const BackwardRoom& room = {}) noexcept;

// What a call over float32 borrows, and the most that one over any types does. Both throw as the operation does for a
// shape that cannot be.
[[nodiscard]] HEADLIGHT_INNER_API std::size_t float_backward_scratch_bytes(const Engine& engine,
                                                                           std::string_view operation,
                                                                           const AttentionShape& shape);
[[nodiscard]] std::size_t backward_scratch_bytes(const Engine& engine, std::string_view operation,
                                                 const AttentionShape& shape, NumberType query_gradient);

}  // namespace headlight::ops
