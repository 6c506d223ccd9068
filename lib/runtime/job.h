// One parallel call: its tasks, and the counter that hands them out.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/floating_point_mode.h"
#include "runtime/parallel.h"

namespace headlight::runtime {

// Two cache lines: the prefetchers of x86 fetch lines in pairs.
inline constexpr std::size_t kSharingDistance = 128;

// Whether this thread is running a task of a parallel call. A call or an engine made there computes inline: the cores
// are already taken. A marker of the thread, not of an engine, so that engines nest too; the only mutable state of the
// library that belongs to no object.
extern constinit thread_local bool inside_task;

class Job {
 public:
  // Lives on the caller's stack until every lane has left.
  Job(TaskFunction task, std::int64_t count) noexcept
      : task_(task), count_(count), mode_(FloatingPointMode::of_this_thread()) {}

  // Takes tasks, in ascending order, until none is left.
  void work(int lane) noexcept {
    const ScopedFloatingPointMode scoped_mode(mode_);
    const bool was_inside = inside_task;
    inside_task = true;
    // Relaxed: what the tasks read was published when the lane was started.
    for (std::int64_t index; (index = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) task_(index, lane);
    inside_task = was_inside;
  }

 private:
  TaskFunction task_;
  std::int64_t count_;
  FloatingPointMode mode_;
  alignas(kSharingDistance) std::atomic<std::int64_t> next_{0};
};

}  // namespace headlight::runtime
