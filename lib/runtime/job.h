// One parallel call: its tasks, and the counters that hand them out.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime/cancellation.h"
#include "runtime/floating_point_mode.h"
#include "runtime/parallel.h"

namespace headlight::runtime {

// Two cache lines: the prefetchers of x86 fetch lines in pairs.
inline constexpr std::size_t kSharingDistance = 128;

// Whether this thread is running a task of a parallel call. A call or an engine made there computes inline: the cores
// are already taken. A marker of the thread, not of an engine, so that engines nest too; beside current_cancellation
// the only mutable state of the library that belongs to no object.
extern constinit thread_local bool inside_task;

// Its tasks lie in shares of neighbours. With one for each worker, a worker begins with the same ones in each call of
// as many tasks and workers, and takes from the others' only when its own are done. So what it wrote in one call it
// finds in its own cache in the next, which one counter for all workers would not give. With one share for all, tasks
// are handed out in order.
class Job {
 public:
  // Lives on the caller's stack until every worker has left.
  Job(TaskFunction task, std::int64_t count, int shares) noexcept
      : task_(task),
        count_(count),
        shares_(std::min(shares, kMostShares)),
        mode_(FloatingPointMode::of_this_thread()),
        cancellation_(current_cancellation) {
    for (int share = 0; share < shares_; ++share)
      next_[share].task.store(first_of_run(count_, shares_, share), std::memory_order_relaxed);
  }

  // Takes the tasks of the worker's own share, in ascending order, then those that are left of the others.
  void work(int worker) noexcept {
    const ScopedFloatingPointMode scoped_mode(mode_);
    const ScopedCancellation scoped_cancellation(cancellation_);
    const bool was_inside = inside_task;
    inside_task = true;
    for (int other = 0; other < shares_; ++other) work_on((worker + other) % shares_, worker);
    inside_task = was_inside;
  }

  // What the caller asks, also while it waits for workers; null: nothing.
  [[nodiscard]] Cancellation* cancellation() const noexcept { return cancellation_; }

 private:
  // More workers than this have a share together.
  static constexpr int kMostShares = 32;

  struct alignas(kSharingDistance) Next {
    std::atomic<std::int64_t> task;
  };

  void work_on(int share, int worker) noexcept {
    const std::int64_t end = first_of_run(count_, shares_, share + 1);
    std::atomic<std::int64_t>& next = next_[share].task;
    // Relaxed: what the tasks read was published when the worker was started. The look spares a share that is done the
    // write.
    if (next.load(std::memory_order_relaxed) >= end) return;
    for (std::int64_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < end;) {
      if (is_cancelled()) return;
      task_(index, worker);
    }
  }

  TaskFunction task_;
  std::int64_t count_;
  int shares_;
  FloatingPointMode mode_;
  Cancellation* cancellation_;
  Next next_[kMostShares];
};

}  // namespace headlight::runtime
