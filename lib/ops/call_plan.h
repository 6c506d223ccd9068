// What every call that splits its work decides: how many workers it wakes, and what of one block of scratch memory is
// the call's and what is each worker's own.
#pragma once

#include <cstddef>

#include "runtime/parallel.h"

namespace headlight::ops {

// Where some elements of T lie in each worker's own memory: not to be taken for a part of the call's.
template <class T>
class WorkerPart {
 public:
  WorkerPart() = default;

 private:
  friend struct CallPlan;
  explicit WorkerPart(runtime::ScratchPart<T> part) noexcept : part_(part) {}
  runtime::ScratchPart<T> part_;
};

// An operation's plan is one with its cut into units, its slots of memory and whatever else it decides. `workers`
// follows from the units and their time (runtime/costs.h) by runtime::workers_for().
struct CallPlan {
  int workers = 1;

  // Room for as many elements of T as the product of the counts: for the call, or for each of its workers.
  template <class T, class... Counts>
  [[nodiscard]] runtime::ScratchPart<T> for_call(Counts... counts) noexcept {
    return call_.add<T>(counts...);
  }
  template <class T, class... Counts>
  [[nodiscard]] WorkerPart<T> for_worker(Counts... counts) noexcept {
    return WorkerPart<T>(worker_.add<T>(counts...));
  }

  // Of all of it: the call's, and behind it the workers'.
  [[nodiscard]] std::size_t bytes() const noexcept {
    runtime::ScratchLayout all = call_;
    static_cast<void>(all.add<std::byte>(workers, worker_.bytes()));
    return all.bytes();
  }
  template <class T>
  [[nodiscard]] T* in(std::byte* scratch, const runtime::ScratchPart<T>& part) const noexcept {
    return part.in(scratch);
  }
  template <class T>
  [[nodiscard]] T* in(std::byte* scratch, int worker, const WorkerPart<T>& part) const noexcept {
    return part.part_.in(scratch + call_.bytes() + static_cast<std::size_t>(worker) * worker_.bytes());
  }

 private:
  runtime::ScratchLayout call_;
  runtime::ScratchLayout worker_;
};

// The same for a call that knows its plan and its memory.
template <class Call, class T>
[[nodiscard]] T* part_of(const Call& call, const runtime::ScratchPart<T>& part) noexcept {
  return call.plan.in(call.scratch, part);
}
template <class Call, class T>
[[nodiscard]] T* part_of(const Call& call, int worker, const WorkerPart<T>& part) noexcept {
  return call.plan.in(call.scratch, worker, part);
}

}  // namespace headlight::ops
