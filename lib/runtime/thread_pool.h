// The workers of an engine.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "runtime/job.h"

namespace headlight::runtime {

// Worker i has that number in every job it takes part in; the caller is worker 0. Each has a state word of its own, on
// which it sleeps and through which a job is offered to it and withdrawn again, so a job touches only the workers that
// it wants, and its end waits only for those that came: a worker that the system has not run yet is not waited for.
//
//   idle     offered to ▶ offered    spun long enough ▶ asleep
//   asleep   offered to ▶ called     (as good as offered, but still to be woken)
//   called   woken by another worker ▶ offered    withdrawn ▶ asleep
//   offered  taken ▶ working    withdrawn ▶ idle
//   working  ended ▶ idle    the caller falls asleep over it ▶ awaited
//   awaited  ended ▶ idle, and wakes the caller
//
// Waking one worker costs its waker microseconds, and the worker comes later still, so every worker that arrives wakes
// two more before it works, and 64 workers are up after six such rounds.
class ThreadPool {
 public:
  // Starts so many workers, which have the numbers from 1 on. Throws std::system_error when one cannot be started
  // (those that were have ended then) and std::bad_alloc.
  ThreadPool(int workers, std::chrono::microseconds spin);
  // Ends the workers. In a forked child, where they do not exist, only frees their memory.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Runs the job on the calling thread as worker 0 and on workers 1 … workers − 1; returns when it has ended. False,
  // and nothing was run, when the workers are serving another call. Not to be called in a forked child.
  [[nodiscard]] bool try_run(Job& job, int workers) noexcept;

 private:
  enum State : int { kIdle, kAsleep, kCalled, kOffered, kWorking, kAwaited, kStop };

  struct alignas(kSharingDistance) Worker {
    std::atomic<int> state{kIdle};
    ThreadPool* pool = nullptr;
    int number = 0;
    pthread_t thread{};
  };

  static void* enter(void* worker) noexcept;
  void serve(Worker& worker) noexcept;
  void offer(Worker& worker) noexcept;
  void wake_two() noexcept;
  void withdraw(Worker& worker) noexcept;
  void wait_until_ended(Worker& worker, Cancellation* cancellation) noexcept;
  void stop(int workers) noexcept;

  const std::unique_ptr<Worker[]> workers_;
  const int count_;
  const std::chrono::microseconds spin_;
  const int process_;
  // Written by the caller that owns busy_, before it offers.
  Job* job_ = nullptr;
  int job_workers_ = 0;
  // The first worker of the job that nobody has looked at to wake it.
  alignas(kSharingDistance) std::atomic<int> next_to_wake_{0};
  alignas(kSharingDistance) std::atomic<bool> busy_{false};
};

}  // namespace headlight::runtime
