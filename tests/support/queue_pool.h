// A caller's own thread pool, for engines that borrow one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "headlight/engine.h"

namespace headlight::test {

// A plain pool with a queue, as a program may have one.
class QueuePool {
 public:
  explicit QueuePool(int workers) {
    for (int index = 0; index < workers; ++index) workers_.emplace_back([this] { serve(); });
  }
  ~QueuePool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    arrived_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  QueuePool(const QueuePool&) = delete;
  QueuePool& operator=(const QueuePool&) = delete;

  Executor executor() {
    Executor executor;
    executor.context = this;
    executor.worker_count = [](void* context) { return static_cast<int>(self(context).workers_.size()) + 1; };
    executor.inside_worker = [](void*) { return inside_; };
    executor.run = [](void* context, int count, void (*task)(void*, int), void* argument) -> void* {
      return self(context).start(count, task, argument);
    };
    executor.wait = [](void* context, void* ticket) { self(context).finish(static_cast<Ticket*>(ticket)); };
    return executor;
  }

  // Runs a function on a worker and waits for it.
  template <class Function>
  void run_on_worker(Function function) {
    finish(start(
        1, [](void* argument, int) { (*static_cast<Function*>(argument))(); }, &function));
  }

  [[nodiscard]] int tasks_started() const { return tasks_started_; }

 private:
  struct Ticket {
    void (*task)(void*, int);
    void* argument;
    int left;
  };
  struct Item {
    Ticket* ticket;
    int index;
  };

  static QueuePool& self(void* context) { return *static_cast<QueuePool*>(context); }

  Ticket* start(int count, void (*task)(void*, int), void* argument) {
    auto ticket = std::make_unique<Ticket>(Ticket{task, argument, count});
    {
      const std::lock_guard lock(mutex_);
      for (int index = 0; index < count; ++index) queue_.push_back({ticket.get(), index});
      tasks_started_ += count;
    }
    arrived_.notify_all();
    return ticket.release();
  }

  void finish(Ticket* ticket) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [ticket] { return ticket->left == 0; });
    delete ticket;
  }

  void serve() {
    inside_ = true;
    std::unique_lock lock(mutex_);
    for (;;) {
      arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Item item = queue_.front();
      queue_.pop_front();
      lock.unlock();
      item.ticket->task(item.ticket->argument, item.index);
      lock.lock();
      if (--item.ticket->left == 0) ended_.notify_all();
    }
  }

  inline static thread_local bool inside_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_, ended_;
  std::deque<Item> queue_;
  bool stopping_ = false;
  std::atomic<int> tasks_started_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace headlight::test
