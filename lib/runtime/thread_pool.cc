#include "runtime/thread_pool.h"

#include <unistd.h>

#include <span>
#include <string>
#include <system_error>

#include "runtime/blocked_signals.h"
#include "runtime/spin.h"
#include "runtime/word_wait.h"

namespace headlight::runtime {

constinit thread_local bool inside_task = false;
constinit thread_local Cancellation* current_cancellation = nullptr;

ThreadPool::ThreadPool(int workers, std::chrono::microseconds spin)
    : workers_(std::make_unique<Worker[]>(static_cast<std::size_t>(workers))),
      count_(workers),
      spin_(spin),
      process_(getpid()) {
  int error = 0;
  int started = 0;
  {
    const BlockedSignals blocked;
    for (; started < workers; ++started) {
      Worker& worker = workers_[static_cast<std::size_t>(started)];
      worker.pool = this;
      worker.number = started + 1;
      error = pthread_create(&worker.thread, nullptr, &ThreadPool::enter, &worker);
      if (error != 0) break;
    }
  }
  if (error == 0) return;
  stop(started);
  throw std::system_error(
      error, std::generic_category(),
      "engine: cannot start worker " + std::to_string(started + 1) + " of " + std::to_string(workers));
}

ThreadPool::~ThreadPool() {
  if (getpid() == process_) stop(count_);
}

void ThreadPool::stop(int workers) noexcept {
  for (int index = 0; index < workers; ++index) {
    std::atomic<int>& state = workers_[static_cast<std::size_t>(index)].state;
    if (state.exchange(kStop, std::memory_order_acq_rel) == kAsleep) wake_one(state);
  }
  for (int index = 0; index < workers; ++index) pthread_join(workers_[static_cast<std::size_t>(index)].thread, nullptr);
}

bool ThreadPool::try_run(Job& job, int workers) noexcept {
  if (busy_.load(std::memory_order_relaxed) || busy_.exchange(true, std::memory_order_acquire)) return false;
  const std::span<Worker> wanted(workers_.get(), static_cast<std::size_t>(workers - 1));
  job_ = &job;
  job_workers_ = workers - 1;
  next_to_wake_.store(0, std::memory_order_relaxed);
  for (Worker& worker : wanted) offer(worker);
  wake_two();
  job.work(0);
  // All tasks are taken. First let go those that have not come, then wait for the others.
  for (Worker& worker : wanted) withdraw(worker);
  for (Worker& worker : wanted) wait_until_ended(worker, job.cancellation());
  busy_.store(false, std::memory_order_release);
  return true;
}

void ThreadPool::offer(Worker& worker) noexcept {
  // Release: whoever takes the offer sees the job.
  int state = kIdle;
  while (!worker.state.compare_exchange_weak(state, state == kAsleep ? kCalled : kOffered, std::memory_order_release,
                                             std::memory_order_relaxed)) {
  }
}

void ThreadPool::wake_two() noexcept {
  int left = 2;
  for (int index; left > 0 && (index = next_to_wake_.fetch_add(1, std::memory_order_relaxed)) < job_workers_;) {
    std::atomic<int>& state = workers_[static_cast<std::size_t>(index)].state;
    int expected = kCalled;
    if (!state.compare_exchange_strong(expected, kOffered, std::memory_order_acq_rel, std::memory_order_relaxed))
      continue;
    wake_one(state);
    --left;
  }
}

void ThreadPool::withdraw(Worker& worker) noexcept {
  // A called worker still sleeps, and has to be woken by the next offer; but one that is just going to sleep may see
  // the call without being woken, so its state can still change under our eyes.
  int state = kCalled;
  if (worker.state.compare_exchange_strong(state, kAsleep, std::memory_order_relaxed)) return;
  state = kOffered;
  worker.state.compare_exchange_strong(state, kIdle, std::memory_order_relaxed);
}

void ThreadPool::wait_until_ended(Worker& worker, Cancellation* cancellation) noexcept {
  // Acquire: the caller sees what the worker's tasks wrote. A worker that was let go may have fallen asleep since.
  const auto ended = [&worker] {
    const int state = worker.state.load(std::memory_order_acquire);
    return state == kIdle || state == kAsleep;
  };
  if (spin_until(spin_, ended)) return;
  int expected = kWorking;
  if (!worker.state.compare_exchange_strong(expected, kAwaited, std::memory_order_acquire)) return;
  if (cancellation == nullptr) return wait_while(worker.state, kAwaited);
  // The worker asks nobody: what it looks at is what is told here.
  constexpr std::chrono::milliseconds kBetweenChecks{5};
  while (!wait_while(worker.state, kAwaited, kBetweenChecks) && !cancellation->is_requested()) {
  }
  wait_while(worker.state, kAwaited);
}

void* ThreadPool::enter(void* argument) noexcept {
  Worker& worker = *static_cast<Worker*>(argument);
  pthread_setname_np(pthread_self(), "headlight");
  worker.pool->serve(worker);
  return nullptr;
}

void ThreadPool::serve(Worker& worker) noexcept {
  std::atomic<int>& state = worker.state;
  for (;;) {
    spin_until(spin_, [&state] { return state.load(std::memory_order_relaxed) != kIdle; });
    int seen = kIdle;
    if (state.compare_exchange_strong(seen, kAsleep, std::memory_order_relaxed) || seen == kAsleep) {
      wait_while(state, kAsleep);
      continue;
    }
    if (seen == kStop) return;
    // Offered, or called and awake after all: as long as it is not withdrawn meanwhile.
    if (!state.compare_exchange_strong(seen, kWorking, std::memory_order_acquire, std::memory_order_relaxed)) continue;
    wake_two();
    job_->work(worker.number);
    if (state.exchange(kIdle, std::memory_order_acq_rel) == kAwaited) wake_one(state);
  }
}

}  // namespace headlight::runtime
