// Cancellation of a running call: the engine's owner gives it a function, which the calling thread asks as it computes.
#pragma once

#include <atomic>
#include <exception>

namespace headlight::runtime {

// Whether the call that the asking thread has made shall end. Asked every few microseconds while it computes, and every
// few milliseconds while it waits for workers; inside tasks, so no operation may be called from it that the engine's
// caller would not call from a task. Once it says so it must say so until that call has returned, whose results then
// hold anything.
using CancellationCheck = bool (*)() noexcept;

// The cancellation state of one parallel call. Only the thread that made the call runs the check, so the check may
// depend on that thread; workers read its last answer.
class Cancellation {
 public:
  explicit Cancellation(CancellationCheck check) noexcept;
  [[nodiscard]] bool is_requested() noexcept;

 private:
  CancellationCheck check_;
  const void* caller_;
  std::atomic<bool> requested_{false};
};

// The state of the parallel call in which this thread computes, if its engine has one. A marker of the thread, as
// inside_task is.
extern constinit thread_local Cancellation* current_cancellation;

// The thread's marker for as long as it lives.
class ScopedCancellation {
 public:
  explicit ScopedCancellation(Cancellation* cancellation) noexcept : before_(current_cancellation) {
    current_cancellation = cancellation;
  }
  ~ScopedCancellation() { current_cancellation = before_; }
  ScopedCancellation(const ScopedCancellation&) = delete;
  ScopedCancellation& operator=(const ScopedCancellation&) = delete;

 private:
  Cancellation* before_;
};

inline Cancellation::Cancellation(CancellationCheck check) noexcept : check_(check), caller_(&current_cancellation) {}

inline bool Cancellation::is_requested() noexcept {
  // Relaxed: nothing is read that was written before it was told.
  if (requested_.load(std::memory_order_relaxed)) return true;
  if (caller_ != &current_cancellation || !check_()) return false;
  requested_.store(true, std::memory_order_relaxed);
  return true;
}

// Tasks are not begun any more once it is true. A task that takes milliseconds asks as it goes, and returns.
[[nodiscard]] inline bool is_cancelled() noexcept {
  return current_cancellation != nullptr && current_cancellation->is_requested();
}

// Thrown by what makes an object that lasts (a packed matrix), which must not be kept half made.
class Cancelled : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the call was cancelled"; }
};

// Whether the call has a check: then tasks are kept short.
[[nodiscard]] inline bool may_be_cancelled() noexcept { return current_cancellation != nullptr; }

}  // namespace headlight::runtime
