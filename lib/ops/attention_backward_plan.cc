#include "ops/attention_backward_plan.h"

#include <algorithm>

#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// An order of magnitude, for deciding whether other workers are worth waking.
double estimated_nanoseconds(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  const double pairs = static_cast<double>(sizes.batch) * static_cast<double>(sizes.query_heads) *
                       static_cast<double>(sizes.query_length) * static_cast<double>(sizes.key_length);
  const double width = 3.0 * static_cast<double>(sizes.head_dim) + 2.0 * static_cast<double>(sizes.value_dim);
  return pairs * width / (runtime::costs::kVectorProductsOfAttention * kernels.lanes);
}

void lay_out_worker(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                    BackwardPlan& plan) noexcept {
  runtime::ScratchLayout layout;
  BackwardWorkerScratch& worker = plan.worker;
  const std::int64_t rows = plan.query_block;
  const std::int64_t keys = plan.key_block;
  worker.query = layout.add<float>(rows * plan.padded_head_dim);
  worker.out_gradient = layout.add<float>(rows * plan.padded_value_dim);
  worker.minus_log_sum_exp = layout.add<float>(rows);
  worker.large_maximum = layout.add<float>(rows);
  worker.begin = layout.add<std::int32_t>(rows);
  worker.end = layout.add<std::int32_t>(rows);
  worker.row_masks = layout.add<const std::uint8_t*>(rows);
  worker.row_biases = layout.add<const float*>(rows);
  worker.row_slopes = layout.add<kernels::RowSlope>(rows);
  worker.cap_derivatives = layout.add<float>(plan.stride);
  worker.weights = layout.add<float>(rows * plan.stride);
  worker.score_gradients = layout.add<float>(rows * plan.stride);
  // Tiles read whole vectors of the last panel.
  worker.key_panels = layout.add<float>(keys * sizes.head_dim + kernels.key_panel);
  worker.value_panels = layout.add<float>(keys * sizes.value_dim + kernels.key_panel);
  worker.key = layout.add<float>(keys * plan.padded_head_dim);
  worker.key_gradient = layout.add<float>(keys * plan.padded_head_dim);
  worker.value_gradient = layout.add<float>(keys * plan.padded_value_dim);
  worker.bias_sums = layout.add<float>(rows * keys);
  worker.bytes = layout.bytes();
}

}  // namespace

BackwardPlan plan_attention_backward(const Engine& engine, const kernels::AttentionKernels& kernels,
                                     const AttentionSizes& sizes) noexcept {
  BackwardPlan plan{};
  // Whole groups of six rows and whole panels of keys. Each block of keys fetches all rows that see it and adds to
  // their query gradients, from beyond the second cache level where heads lie side by side: so blocks of keys are as
  // large as that level holds beside the weights (850 KiB in all at 64). (Twelve heads of 64, L = 1024, Intel, two
  // threads: 213 GFLOP/s with 192 keys, 240 with 384.)
  const bool narrow = sizes.head_dim + sizes.value_dim <= 128;
  plan.query_block = narrow ? 96 : 48;
  plan.key_block = narrow ? 384 : 192;
  plan.key_blocks = divide_up(sizes.key_length, plan.key_block);
  plan.padded_head_dim = round_up(sizes.head_dim, kernels.lanes);
  plan.padded_value_dim = round_up(sizes.value_dim, kernels.lanes);
  plan.stride = plan.key_block + kernels.lanes;
  const std::int64_t units = sizes.batch * sizes.key_value_heads * plan.key_blocks;
  plan.workers = runtime::workers_for(engine, units, estimated_nanoseconds(kernels, sizes));
  lay_out_worker(kernels, sizes, plan);

  runtime::ScratchLayout layout;
  plan.workers_begin = layout.add<std::byte>(static_cast<std::int64_t>(plan.worker.bytes) * plan.workers);
  plan.delta = layout.add<float>(sizes.batch * sizes.query_heads * sizes.query_length);
  plan.progress = layout.add<std::int64_t>(units);
  plan.bytes = layout.bytes();
  return plan;
}

}  // namespace headlight::ops
