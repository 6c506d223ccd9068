#include "runtime/parallel.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/costs.h"
#include "runtime/engine_state.h"
#include "runtime/job.h"

namespace headlight::runtime {
namespace {

void run_inline(std::int64_t count, TaskFunction task) noexcept {
  for (std::int64_t index = 0; index < count && !is_cancelled(); ++index) task(index, 0);
}

// Workers 1 … workers − 1 as tasks of the caller's pool, worker 0 here. Helpers that come late find no task left.
void run_on(const Executor& executor, Job& job, int workers) noexcept {
  void* const ticket = executor.run(
      executor.context, workers - 1,
      [](void* argument, int index) noexcept { static_cast<Job*>(argument)->work(index + 1); }, &job);
  job.work(0);
  executor.wait(executor.context, ticket);
}

// A frame of its own: a job takes 4 KiB of the stack, and calls within tasks have none.
[[gnu::noinline]] void run_on_workers(EngineState& engine, std::int64_t count, int workers, int shares,
                                      TaskFunction task) noexcept {
  Job job(task, count, shares);
  if (engine.executor) return run_on(*engine.executor, job, workers);
  if (!engine.pool->try_run(job, workers)) run_inline(count, task);
}

void run(EngineState& engine, std::int64_t count, int workers, TaskFunction task, HandOut hand_out) noexcept {
  // First what most short calls are.
  if (workers <= 1 || count <= 1 || inside_task) return run_inline(count, task);
  workers = static_cast<int>(std::min<std::int64_t>({workers, engine.threads, count}));
  if (workers <= 1) return run_inline(count, task);
  const int shares = hand_out == HandOut::in_shares ? workers : 1;
  // Asked only where threads are about to be used: a system call, which is short against a wake-up.
  if (getpid() != engine.process) return run_inline(count, task);
  if (engine.executor && engine.executor->inside_worker(engine.executor->context)) return run_inline(count, task);
  run_on_workers(engine, count, workers, shares, task);
}

// Apart, too: calls without a check make no room for its state.
[[gnu::noinline]] void run_until_cancelled(EngineState& engine, std::int64_t count, int workers, TaskFunction task,
                                           HandOut hand_out) noexcept {
  Cancellation cancellation(engine.cancellation_check);
  // The rest of an operation whose last call was told to end: no worker begins before this one knows.
  if (cancellation.is_requested()) return;
  const ScopedCancellation scoped(&cancellation);
  run(engine, count, workers, task, hand_out);
}

}  // namespace

void run_tasks(EngineState& engine, std::int64_t count, int workers, TaskFunction task, HandOut hand_out) noexcept {
  if (engine.cancellation_check == nullptr || current_cancellation != nullptr)
    return run(engine, count, workers, task, hand_out);
  run_until_cancelled(engine, count, workers, task, hand_out);
}

void throw_if_stopped(Engine& engine) {
  const CancellationCheck check = engine.state().cancellation_check;
  if (current_cancellation != nullptr ? is_cancelled() : check != nullptr && check()) throw Cancelled();
}

int workers_from_here(const Engine& engine) noexcept { return inside_task ? 1 : engine.threads(); }

// A spinning worker arrives long before a sleeping one would. So a second worker pays for less work while calls follow
// one another, which kPerWorker takes for granted, than when they do not (docs/history/runtime.md). The answer depends
// on the arguments alone, not on who is awake: callers size their scratch by it.
int workers_for(const Engine& engine, std::int64_t tasks, double nanoseconds) noexcept {
  if (nanoseconds < 2 * costs::kPerWorker) return 1;  // without the quotient, which takes as long as a short row
  const auto most = static_cast<double>(std::min<std::int64_t>(engine.threads(), tasks));
  return static_cast<int>(std::max(1.0, std::min(nanoseconds / costs::kPerWorker, most)));
}

}  // namespace headlight::runtime
