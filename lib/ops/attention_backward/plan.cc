#include "ops/attention_backward/plan.h"

#include <algorithm>
#include <cassert>

#include "kernels/attention/amx_shapes.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// An order of magnitude, for deciding whether other workers are worth waking.
double backward_nanoseconds(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  const double pairs = static_cast<double>(sizes.batch) * static_cast<double>(sizes.query_heads) *
                       static_cast<double>(sizes.query_length) * static_cast<double>(sizes.key_length);
  const double width = 3.0 * static_cast<double>(sizes.head_dim) + 2.0 * static_cast<double>(sizes.value_dim);
  return pairs * width / (runtime::costs::kVectorProductsOfAttention * kernels.lanes * kernels.numbers_of_word);
}

void lay_out_worker(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                    BackwardPlan& plan) noexcept {
  const std::int64_t rows = plan.query_block;
  const std::int64_t keys = plan.key_block;
  // Words of pairs take half of it twice, but for what fills them up.
  const auto room_of_rows = [&](std::int64_t dim, std::int64_t padded) {
    return std::max(rows * padded, rows / 2 * padded + rows * kernels::filled_up(dim / 2, kernels.words_at_once));
  };
  plan.query = plan.for_worker<float>(room_of_rows(sizes.head_dim, plan.padded_head_dim));
  plan.out_gradient = plan.for_worker<float>(room_of_rows(sizes.value_dim, plan.padded_value_dim));
  plan.minus_log_sum_exp = plan.for_worker<float>(rows);
  plan.large_maximum = plan.for_worker<float>(rows);
  plan.begin = plan.for_worker<std::int32_t>(rows);
  plan.end = plan.for_worker<std::int32_t>(rows);
  plan.row_modifiers = room_for_modifiers(plan, rows, rows, rows);
  plan.cap_derivatives = plan.for_worker<float>(plan.stride);
  // Words of two rows take half of it. Behind those of weights is room for floats of 2 · query_rows rows, behind those
  // of score gradients for words of two keys. In tile registers weights and score gradients of two rows take all of it,
  // and floats are in front of the words of two keys.
  assert(4 * kernels.query_rows <= rows);
  assert(kernels.keys_at_once == 1 || rows <= kernels::BackwardTile::kMostRowsOfTiles);
  plan.weights = plan.for_worker<float>(rows * plan.stride);
  plan.score_gradients = plan.for_worker<float>(rows * plan.stride);
  if (kernels.keys_at_once > 1) plan.room_of_tiles = plan.for_worker<float>(kernels::BackwardTile::kRoomOfTiles);
  // Tiles read whole vectors of the last panel.
  plan.key_panels = plan.for_worker<float>(keys * plan.padded_head_dim + kernels.key_panel);
  plan.value_panels = plan.for_worker<float>(keys * plan.padded_value_dim + kernels.key_panel);
  plan.key = plan.for_worker<float>(keys * plan.padded_head_dim);
  plan.key_gradient = plan.for_worker<float>(keys * plan.padded_head_dim);
  plan.value_gradient = plan.for_worker<float>(keys * plan.padded_value_dim);
  plan.bias_sums = plan.for_worker<float>(rows * keys);
}

}  // namespace

BackwardPlan plan_attention_backward(const Engine& engine, const kernels::AttentionKernels& kernels,
                                     const AttentionSizes& sizes, const BackwardRoom& room) noexcept {
  BackwardPlan plan{};
  // Whole groups of six rows and whole panels of keys. Each block of keys fetches all rows that see it and adds to
  // their query gradients, from beyond the second cache level where heads lie side by side: so blocks of keys are as
  // large as that level holds beside the weights (850 KiB in all at 64).
  const bool narrow = sizes.head_dim + sizes.value_dim <= 128;
  // For tile registers what they take at once. There keys have their sums read and written once for each block of rows,
  // so blocks of these are larger, too.
  const bool in_tiles = kernels.keys_at_once > 1;
  plan.query_block = in_tiles ? 256 : narrow ? 96 : 48;
  plan.key_block = in_tiles ? (sizes.head_dim + sizes.value_dim <= 256 ? 512 : 256) : narrow ? 384 : 192;
  plan.key_blocks = divide_up(sizes.key_length, plan.key_block);
  plan.padded_head_dim = round_up(sizes.head_dim, kernels.lanes);
  plan.padded_value_dim = round_up(sizes.value_dim, kernels.lanes);
  plan.stride = plan.key_block + kernels.lanes;
  const std::int64_t units = sizes.batch * sizes.key_value_heads * plan.key_blocks;
  plan.workers = runtime::workers_for(engine, units, backward_nanoseconds(kernels, sizes));
  lay_out_worker(kernels, sizes, plan);
  const std::int64_t rows = sizes.batch * sizes.query_heads * sizes.query_length;
  plan.query_sums = plan.for_call<float>(room.query_sums ? rows * plan.padded_head_dim : 0);
  plan.delta = plan.for_call<float>(rows);
  plan.running_sums = plan.for_call<kernels::RunningSum>(room.running_sums ? rows : 0);
  plan.progress = plan.for_call<std::int64_t>(units);
  return plan;
}

std::size_t float_backward_scratch_bytes(const Engine& engine, std::string_view operation,
                                         const AttentionShape& shape) {
  const AttentionSizes sizes = check_attention_shape(operation, shape);
  return plan_attention_backward(engine, kernels::attention_kernels(engine.isa()), sizes, {.running_sums = true})
      .bytes();
}

std::size_t backward_scratch_bytes(const Engine& engine, std::string_view operation, const AttentionShape& shape,
                                   NumberType query_gradient) {
  const AttentionSizes sizes = check_attention_shape(operation, shape);
  const kernels::AttentionKernels& kernels = kernels::attention_kernels(engine.isa());
  const BackwardRoom room = {.query_sums = query_gradient != NumberType::float32, .running_sums = true};
  const std::size_t bytes = plan_attention_backward(engine, kernels, sizes, room).bytes();
  if (!engine.features().has(InstructionFeature::amx_bf16)) return bytes;
  // Of operands of bfloat16.
  const kernels::AttentionKernels tiles = kernels::with_shapes_of_tile_registers(kernels);
  return std::max(bytes, plan_attention_backward(engine, tiles, sizes, room).bytes());
}

}  // namespace headlight::ops
