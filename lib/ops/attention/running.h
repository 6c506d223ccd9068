// Rows whose keys come piece by piece: between the pieces each keeps the state of all blocks so far.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headlight/tensor.h"
#include "ops/attention/row_block.h"
#include "ops/attention/rows.h"

namespace headlight::ops {

// A plan for such rows: of `keys` keys, which need not be all there are, and queries of that type.
[[nodiscard]] AttentionPlan plan_running_rows(const Engine& engine, const kernels::AttentionKernels& kernels,
                                              AttentionSizes sizes, std::int64_t keys, const AttentionOptions& options,
                                              NumberType query = NumberType::float32) noexcept;

class RunningRows {
 public:
  // The states of all rows of a call, which has a plan of plan_running_rows() and must outlive them. `in_place`: their
  // unnormalised outputs lie in call.out, which takes no memory of its own, where its rows are whole vectors of
  // float32. Throws OutOfMemory.
  RunningRows(const AttentionCall& call, bool in_place);

  // Goes on with the blocks of keys, on each sequence's grid, that end behind key `from` of the tensor, and at or
  // before key `to`. call.keys holds them, and call.scratch is there.
  void attend(Engine& engine, std::int64_t from, std::int64_t to) noexcept;
  // Into call.out, and the options' log_sum_exp.
  void finish(Engine& engine) noexcept;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(maximum_.size() + sums_.size() + out_.size()) * sizeof(float);
  }

 private:
  [[nodiscard]] kernels::AttentionState row(std::int64_t sample, std::int64_t head, std::int64_t r) noexcept;
  void attend_block(const RowRange& rows, const AttentionSequence& sequence, int worker, KeyInterval keys) noexcept;
  // One row's state of a block into that of all blocks before; the row's first block begins it.
  void take(const kernels::AttentionState& to, const kernels::AttentionState& from, bool is_first) const noexcept;
  template <class Function>
  void for_each_unit(Engine& engine, const Function& f) noexcept;

  const AttentionCall& call_;
  bool in_place_;
  Tensor<float, 1> maximum_;  // [B · Hkv · rows]
  Tensor<float, 2> sums_;     // [B · Hkv · rows, lanes]
  Tensor<float, 2> out_;      // [B · Hkv · rows, padded value_dim], or nothing
};

}  // namespace headlight::ops
