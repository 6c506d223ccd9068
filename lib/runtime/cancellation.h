// How a call ends before its time: whoever made the engine answers a question that the calling thread asks as it
// computes.
#pragma once

#include <atomic>
#include <exception>

namespace headlight::runtime {

// Whether the call that the asking thread has made shall end. Asked every few microseconds while it computes, and every
// few milliseconds while it waits for workers; inside tasks, so no operation may be called from it that the engine's
// caller would not call from a task. Once it says so it must say so until that call has returned, whose results then
// hold anything.
using StopQuestion = bool (*)() noexcept;

// The question of one parallel call. Only the thread that made the call asks it, so that it may speak of that thread;
// workers look at what that was told.
class Stop {
 public:
  explicit Stop(StopQuestion question) noexcept;
  [[nodiscard]] bool is_asked() noexcept;

 private:
  StopQuestion question_;
  const void* caller_;
  std::atomic<bool> told_{false};
};

// That of the parallel call in which this thread computes, if its engine has one. A marker of the thread, as
// inside_task is.
extern constinit thread_local Stop* current_stop;

// The thread's marker for as long as it lives.
class ScopedStop {
 public:
  explicit ScopedStop(Stop* stop) noexcept : before_(current_stop) { current_stop = stop; }
  ~ScopedStop() { current_stop = before_; }
  ScopedStop(const ScopedStop&) = delete;
  ScopedStop& operator=(const ScopedStop&) = delete;

 private:
  Stop* before_;
};

inline Stop::Stop(StopQuestion question) noexcept : question_(question), caller_(&current_stop) {}

inline bool Stop::is_asked() noexcept {
  // Relaxed: nothing is read that was written before it was told.
  if (told_.load(std::memory_order_relaxed)) return true;
  if (caller_ != &current_stop || !question_()) return false;
  told_.store(true, std::memory_order_relaxed);
  return true;
}

// Tasks are not begun any more once it is true. A task that takes milliseconds asks as it goes, and returns.
[[nodiscard]] inline bool is_stopped() noexcept { return current_stop != nullptr && current_stop->is_asked(); }

// What makes something that lasts throws this rather than keep half of it.
class Stopped : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the call was told to end"; }
};

// Whether somebody may end the call: then tasks are kept short.
[[nodiscard]] inline bool may_stop() noexcept { return current_stop != nullptr; }

}  // namespace headlight::runtime
