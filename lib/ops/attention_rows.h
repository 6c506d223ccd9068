// Blocks of query rows against the keys that they see: from checked views to calls of the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headlight/attention.h"
#include "kernels/attention_kernels.h"
#include "ops/attention_check.h"
#include "ops/attention_masks.h"
#include "ops/attention_plan.h"
#include "ops/attention_scale.h"
#include "ops/key_source.h"
#include "runtime/dropout.h"

namespace headlight::ops {

// One checked call.
struct AttentionCall {
  View<const float, 4> query;
  KeySource keys;
  View<float, 4> out;
  const AttentionOptions& options;
  AttentionSizes sizes;
  AttentionSequences sequences;
  const kernels::AttentionKernels& kernels;
  AttentionPlan plan;
  AttentionScale scale;
  kernels::AttentionDropout dropout;
  std::byte* scratch;

  template <class T>
  [[nodiscard]] T* worker_part(int worker, std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(scratch + plan.workers_begin + static_cast<std::size_t>(worker) * plan.worker.bytes +
                                offset);
  }
  template <class T>
  [[nodiscard]] T* part(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(scratch + offset);
  }
};

// Where a query row's maximum and sum are kept, of `row_maximum` and `row_sum`; −1 where nobody asked for it.
[[nodiscard]] std::int64_t saved_row(const AttentionCall& call, std::int64_t sample, std::int64_t head,
                                     std::int64_t query) noexcept;

[[nodiscard]] inline kernels::AttentionDropout dropout_of(const AttentionOptions& options) noexcept {
  const Dropout& dropout = options.dropout;
  return {dropout.seed, dropout.stream, runtime::dropout_threshold(dropout.probability),
          runtime::dropout_scale(dropout.probability)};
}

// Where the row of a mask or bias for that (sample, head, query) begins; axes of extent 1 broadcast.
template <class T>
[[nodiscard]] T* broadcast_row(const View<T, 4>& view, std::int64_t b, std::int64_t h, std::int64_t i) noexcept {
  const auto step = [&](int axis, std::int64_t index) {
    return view.extent(axis) == 1 ? 0 : index * view.stride(axis);
  };
  return view.data + step(0, b) + step(1, h) + step(2, i);
}

// What all rows of the call have in common.
inline void set_mask_strides(const AttentionOptions& options, kernels::AttentionRowMasks& masks) noexcept {
  if (options.mask) {
    masks.mask_key_stride = options.mask->entries.extent(3) == 1 ? 0 : 1;
    masks.attend = options.mask->means == MaskMeans::attend;
  }
  if (options.bias) masks.bias_key_stride = options.bias.extent(3) == 1 ? 0 : 1;
}

// Keys and values of one (sample, key/value head), packed or null. Key j of the tensor begins at float j · head_dim.
struct PackedHead {
  float* keys = nullptr;
  float* values = nullptr;
};

// Rows [first, last) of each of `heads` key/value heads of a sample, counted over Lq · group.
struct RowRange {
  std::int64_t sample;
  std::int64_t key_value_head;
  std::int64_t first;
  std::int64_t last;
  std::int64_t heads = 1;
};

// Packs the panels that begin among keys [first, last) of the tensor.
void pack_head(const AttentionCall& call, std::int64_t sample, std::int64_t key_value_head, std::int64_t first,
               std::int64_t last, PackedHead packed) noexcept;

// Everything for those rows, from query to out; at most row_block of them. Without `packed` the keys are packed block
// by block, or read where they lie, as the plan says.
void attend_rows(const AttentionCall& call, int worker, const RowRange& range, PackedHead packed) noexcept;

// Key block `block` alone, into the call's partial states.
void sweep_partially(const AttentionCall& call, int worker, const RowRange& range, std::int64_t block) noexcept;

// Merges the partial states of those heads' rows in ascending order, and finishes the rows.
void merge_partials(const AttentionCall& call, int worker, const RowRange& range) noexcept;

}  // namespace headlight::ops
