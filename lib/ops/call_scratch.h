// The scratch memory of a call of attention, forward or backward, as its plan lays it out: once for the call, and once
// for each worker.
#pragma once

#include <cstddef>

#include "ops/attention_steps.h"
#include "runtime/parallel.h"

namespace headlight::ops {

template <class Call, class T>
[[nodiscard]] T* part_of(const Call& call, const runtime::ScratchPart<T>& part) noexcept {
  return part.in(call.scratch);
}

template <class Call, class T>
[[nodiscard]] T* part_of(const Call& call, int worker, const runtime::ScratchPart<T>& part) noexcept {
  return part.in(call.plan.workers_begin.in(call.scratch) + static_cast<std::size_t>(worker) * call.plan.worker.bytes);
}

template <class Call>
[[nodiscard]] StepRows step_rows(const Call& call, int worker) noexcept {
  return {part_of(call, worker, call.plan.worker.row_masks), part_of(call, worker, call.plan.worker.row_biases),
          part_of(call, worker, call.plan.worker.row_slopes)};
}

}  // namespace headlight::ops
